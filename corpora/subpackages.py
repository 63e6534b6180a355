"""The subpackage of each module: classes of the docs benchmark, and labels of `data=docstring_classes`."""

from collections import Counter
from collections.abc import Sequence

TOO_BIG = 1 / 3  # a subpackage with a larger share of the package is divided one level deeper


def subpackages(modules: Sequence[str]) -> dict[str, str]:
    """Map each module to its subpackage: two levels ("scipy.stats"); one more where that holds over a third of all."""
    depth = dict.fromkeys(modules, 2)
    while True:
        labels = {m: ".".join(m.split(".")[: depth[m]]) for m in depth}
        count = Counter(labels[m] for m in modules)
        big = [m for m in depth if count[labels[m]] > TOO_BIG * len(modules) and m.count(".") >= depth[m]]
        if not big:
            return labels
        for module in big:
            depth[module] += 1
