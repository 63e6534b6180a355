"""Memory that a process has freed stays with it: glibc would hand every large tensor back to the kernel at once."""

import ctypes
import ctypes.util
import sys

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # malloc.h
LARGEST = 32 * 2**20  # bytes; what glibc accepts at most (HEAP_MAX_SIZE / 2)
KEPT = 2**30  # bytes free at the top of the heap before any goes back


def keep_freed_memory() -> bool:
    """Let malloc keep freed tensors for the next ones; return whether it could (glibc, that is Linux, only).

    A step frees and asks for the same few megabytes thousands of times. With glibc's defaults each of them is mapped
    anew and its pages are cleared by the kernel: a quarter of a step's time on a CPU (docs/performance.md). What a
    process holds at its peak it holds from then on.
    """
    if not sys.platform.startswith("linux"):
        return False
    name = ctypes.util.find_library("c")
    mallopt = getattr(ctypes.CDLL(name), "mallopt", None) if name else None
    return bool(mallopt and mallopt(M_MMAP_THRESHOLD, LARGEST) and mallopt(M_TRIM_THRESHOLD, KEPT))
