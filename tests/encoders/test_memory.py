"""Freed memory stays with the process: tensors of the sizes that were freed cost no new pages."""

import subprocess
import sys

import pytest

FAULTS = """
import resource, torch
from encoders.memory import keep_freed_memory
{call}
torch.set_num_threads(1)
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
def work():
    kept = [torch.ones(n << 18) for n in (1, 3, 6, 2, 3, 1)]
    return sum(float(t.sum()) for t in kept)
for _ in range(5):
    work()
before = faults()
for _ in range(20):
    work()
print(faults() - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc alone")
def test_page_faults():
    def run(call):
        words = [sys.executable, "-c", FAULTS.format(call=call)]
        return int(subprocess.run(words, capture_output=True, text=True, check=True).stdout)

    usual, kept = run(""), run("assert keep_freed_memory()")
    assert kept < 100, "twenty times 16 MB in six tensors: 4,096 pages, or hardly a new one"
    assert usual > 20_000
