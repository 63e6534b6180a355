"""Contents of a wheel: the packages, and below pooling_ablation/ all that a checkout has beside them."""

from tempfile import TemporaryDirectory

from setuptools import find_packages, setup

BUILD = TemporaryDirectory()  # a build/ of the checkout would keep files that are no longer there
NOT_INSTALLED = ["tests*", "benchmarks*"]

setup(
    packages=[*find_packages(exclude=NOT_INSTALLED), "pooling_ablation"],
    package_dir={"pooling_ablation": "."},  # train.py, evaluate.py, study.py
    include_package_data=False,  # the folders of conf/ are no packages
    package_data={
        "pooling_ablation": ["conf/**/*", "assets/**/*"],
        "": ["*.csv", "*.json.gz", "*.bib", "*.css", "*.js", "*.j2", "py.typed"],
    },
    options={"build": {"build_base": BUILD.name}},
)
