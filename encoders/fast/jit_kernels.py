"""Element-wise passes of a decoder layer, compiled by numba; importing this file compiles, or reads numba's cache.

A bf16 number comes as the uint16 of its bits. Sums and functions are float32, and each result is rounded once, to the
nearest even, as torch rounds. No kernel mixes rows, and none starts a thread.
"""

from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import intrinsic

H1, H2, H3, H4, H5 = (f"uint16[{':,' * n}::1]" for n in range(5))
F1, F2, F3 = (f"float32[{':,' * n}::1]" for n in range(3))
F, U, U16 = np.float32, np.uint32, np.uint16
ONE, LOG2_E, LN_2, LOWEST, HIGHEST = F(1), F(1.44269504), F(0.693147181), F(-87), F(88)
THIRD, FOURTH, FIFTH, HALF = F(1 / 6), F(1 / 24), F(1 / 120), F(0.5)  # the series of exp
# Sums may be taken lane by lane, a product and a sum may be one instruction; NaN and infinity stay what they are.
FREEDOMS = {"reassoc", "nsz", "contract"}


def _kernel(*arguments: str) -> Any:
    """Decorate a kernel that takes `arguments`; it is compiled at once, so that no later call waits for it."""
    signature = f"void({', '.join(arguments)})"
    return njit(signature, cache=True, nogil=True, error_model="numpy", fastmath=FREEDOMS)


def _instruction(build: Any) -> Any:
    return intrinsic(build)  # numba's own type would have callers give the context as well


@_instruction
def _bits(_context: Any, x: Any) -> Any:
    """The bits of a float32 as a uint32."""
    return types.uint32(x), lambda _c, b, _s, args: b.bitcast(args[0], _llvm().IntType(32))


@_instruction
def _number(_context: Any, x: Any) -> Any:
    """The float32 of a uint32's bits."""
    return types.float32(x), lambda _c, b, _s, args: b.bitcast(args[0], _llvm().FloatType())


@_instruction
def _nearest(_context: Any, x: Any) -> Any:
    """A float32 rounded to a whole number."""
    rint = lambda b: b.module.declare_intrinsic("llvm.rint", [_llvm().FloatType()])  # noqa: E731
    return types.float32(x), lambda _c, b, _s, args: b.call(rint(b), args)


def _llvm() -> Any:
    from llvmlite import ir

    return ir


@njit(inline="always")
def _wide(x: Any) -> Any:
    """The float32 of a bf16 number."""
    return _number(U(U(x) << U(16)))


@njit(inline="always")
def _rounded(x: Any) -> Any:
    """The bf16 number nearest to a float32, the even one of two; NaN stays NaN."""
    u = _bits(x)
    up = U16(U(u + U(U(0x7FFF) + U((u >> U(16)) & U(1)))) >> U(16))
    return U16(0x7FC0) if U(u & U(0x7FFFFFFF)) > U(0x7F800000) else up


@njit(inline="always")
def _exp(x: Any) -> Any:
    """e^x to 3e-6 of it, from -87 to 88: 2^n e^r with a series of five terms. LLVM vectorises it, not libm's."""
    x = LOWEST if x < LOWEST else x
    x = HIGHEST if x > HIGHEST else x
    n = _nearest(x * LOG2_E)
    r = x - n * LN_2
    series = ((FIFTH * r + FOURTH) * r + THIRD) * r + HALF
    return (series * r * r + r + ONE) * _number(U(U(np.int32(n) + np.int32(127)) << U(23)))


@_kernel(H1, "uint8[::1]", H1)
def mask(x: Any, kept: Any, out: Any) -> None:
    """`out` = x where `kept` is one, zero where it is zero; `out` may be x."""
    for i in range(x.size):
        out[i] = x[i] & U16(U16(0) - U16(kept[i]))


@_kernel(F2, H2, F2)
def add(h: Any, a: Any, out: Any) -> None:
    """`out` = h + a."""
    for t in range(h.shape[0]):
        for d in range(h.shape[1]):
            out[t, d] = h[t, d] + _wide(a[t, d])


@_kernel(F2, F1, "float32", H2, F1)
def norm(h: Any, w: Any, eps: Any, out: Any, inverse: Any) -> None:
    """`out` = w h r of each row, `inverse` = r = 1 / sqrt(mean(h^2) + eps)."""
    for t in range(h.shape[0]):
        total = F(0)
        for d in range(h.shape[1]):
            total += h[t, d] * h[t, d]
        inverse[t] = ONE / np.sqrt(total / F(h.shape[1]) + eps)
        for d in range(h.shape[1]):
            out[t, d] = _rounded(w[d] * (h[t, d] * inverse[t]))


@_kernel(H2, F2, F2, F1, F1, F2)
def norm_backward(g: Any, of_h: Any, h: Any, w: Any, inverse: Any, out: Any) -> None:  # noqa: PLR0917
    """`out` = of_h + r (g w - h r^2 mean(g w h)): the gradient of h, which both a norm and the residual stream read."""
    for t in range(h.shape[0]):
        r, total = inverse[t], F(0)
        for d in range(h.shape[1]):
            total += _wide(g[t, d]) * w[d] * h[t, d]
        share = total * r * r * r / F(h.shape[1])
        for d in range(h.shape[1]):
            out[t, d] = of_h[t, d] + (_wide(g[t, d]) * w[d] * r - h[t, d] * share)


@_kernel(H2, H2, H2)
def gate(g: Any, u: Any, out: Any) -> None:
    """`out` = silu(g) u, silu(g) rounded first, as torch does."""
    for t in range(g.shape[0]):
        for d in range(g.shape[1]):
            x = _wide(g[t, d])
            out[t, d] = _rounded(_wide(_rounded(x / (ONE + _exp(-x)))) * _wide(u[t, d]))


@_kernel(H2, H2, H2, H2, H2)
def gate_backward(of_out: Any, g: Any, u: Any, of_g: Any, of_u: Any) -> None:
    """The gradients of `gate`: of_u = of_out silu(g); of_g = of_out u s (1 + g (1 - s)), s = 1 / (1 + e^-g)."""
    for t in range(g.shape[0]):
        for d in range(g.shape[1]):
            x, y = _wide(g[t, d]), _wide(of_out[t, d])
            s = ONE / (ONE + _exp(-x))
            of_u[t, d] = _rounded(y * (x * s))
            of_g[t, d] = _rounded(y * _wide(u[t, d]) * (s * (ONE + x * (ONE - s))))


@_kernel(H3, F2, F2, "float32", "float32", H3)
def rotate(x: Any, cos: Any, sin: Any, sign: Any, scale: Any, out: Any) -> None:  # noqa: PLR0917
    """`out` = scale R x of each token and head, R its rotation (Su et al. 2021, arXiv 2104.09864); sign -1: back."""
    half = x.shape[2] // 2
    for n in range(x.shape[0]):
        for h in range(x.shape[1]):
            for j in range(half):
                a, b = _wide(x[n, h, j]), _wide(x[n, h, j + half])
                out[n, h, j] = _rounded((a * cos[n, j] - sign * b * sin[n, j]) * scale)
                out[n, h, j + half] = _rounded((b * cos[n, j] + sign * a * sin[n, j]) * scale)


@_kernel(H3, "int64[::1]", H5)
def gather(x: Any, places: Any, out: Any) -> None:
    """`out`[s, b, g, t] = head s G + g of the token at places[b T + t]; zeros where that is -1, at padding."""
    shared, texts, group, width, size = out.shape
    for i in range(shared * texts * group * width):
        t, g, b, s = i % width, i // width % group, i // (width * group) % texts, i // (width * group * texts)
        place = places[b * width + t]
        real = U16(0) if place < 0 else U16(0xFFFF)
        for j in range(size):
            out[s, b, g, t, j] = x[max(place, 0), s * group + g, j] & real


@_kernel(H5, "int64[::1]", H3)
def scatter(block: Any, places: Any, out: Any) -> None:
    """Undo `gather`: write each token's heads to its place."""
    shared, texts, group, width, size = block.shape
    for i in range(shared * texts * group * width):
        t, g, b, s = i % width, i // width % group, i // (width * group) % texts, i // (width * group * texts)
        place = places[b * width + t]
        if place >= 0:
            of_token, of_block = out[place, s * group + g], block[s, b, g, t]
            for j in range(size):
                of_token[j] = of_block[j]


@_kernel(H5, F3, F1)
def softmax(scores: Any, bias: Any, row: Any) -> None:
    """softmax(scores + bias) over the last dimension, in place. bias: [b or 1, t, t]; row: room for t numbers."""
    shared, texts, group, width, _ = scores.shape
    for i in range(shared * texts * group * width):
        t, b = i % width, i // (width * group) % texts
        of_row, hidden = scores[i // (width * group * texts), b, i // width % group, t], bias[b % len(bias), t]
        highest, total = F(-3e38), F(0)
        for k in range(width):
            row[k] = _wide(of_row[k]) + hidden[k]
            highest = max(highest, row[k])
        for k in range(width):
            x = row[k] - highest
            row[k] = F(0) if x < LOWEST else _exp(x)
            total += row[k]
        for k in range(width):
            of_row[k] = _rounded(row[k] / total)


@_kernel(H2, H2, F1)
def softmax_backward(of_weights: Any, weights: Any, sums: Any) -> None:
    """(of_weights - sums) weights of each row, in place: the gradient of the scores."""
    for i in range(weights.shape[0]):
        for k in range(weights.shape[1]):
            of_weights[i, k] = _rounded((_wide(of_weights[i, k]) - sums[i]) * _wide(weights[i, k]))


@_kernel(H2, H2, F1)
def row_products(x: Any, y: Any, out: Any) -> None:
    """`out`[i] = sum over d of x[i, d] y[i, d]."""
    for i in range(x.shape[0]):
        total = F(0)
        for d in range(x.shape[1]):
            total += _wide(x[i, d]) * _wide(y[i, d])
        out[i] = total
