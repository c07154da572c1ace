"""Errors that say which argument is wrong, what came, and what was expected."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

import torch


def wrong(argument: str, came: object, expected: str) -> ValueError:
    """The one form of our complaints about an argument."""
    return ValueError(f"{argument}: got {came}, expected {expected}")


def shape(x: torch.Tensor) -> str:
    return "[" + ", ".join(map(str, x.shape)) + "]"


def tensor(argument: str, x: object, dims: int, layout: str, *, floating: bool = True) -> torch.Tensor:
    """`x` is a tensor of `dims` dimensions, none of them empty; `layout` is how the message names them."""
    if not isinstance(x, torch.Tensor):
        raise wrong(argument, type(x).__name__, f"a tensor {layout}")
    if x.ndim != dims or 0 in x.shape:
        raise wrong(argument, f"shape {shape(x)}", f"{layout}, each at least 1")
    if floating and not x.is_floating_point():
        raise wrong(argument, f"dtype {x.dtype}", "a floating-point dtype")
    return x


def same(argument: str, x: torch.Tensor, expected: tuple[int, ...], because: str) -> torch.Tensor:
    """`x` has exactly the shape `expected`, for the reason `because`."""
    if not isinstance(x, torch.Tensor):
        raise wrong(argument, type(x).__name__, f"a tensor [{', '.join(map(str, expected))}]")
    if tuple(x.shape) != tuple(expected):
        raise wrong(argument, f"shape {shape(x)}", f"[{', '.join(map(str, expected))}] ({because})")
    return x


def alike(argument: str, x: torch.Tensor, other_name: str, other: torch.Tensor) -> None:
    """`x` has the dtype and the device of `other`."""
    if x.dtype != other.dtype:
        raise wrong(argument, f"dtype {x.dtype}", f"{other.dtype}, the dtype of {other_name}")
    if x.device != other.device:
        raise wrong(argument, f"device {x.device}", f"{other.device}, the device of {other_name}")


def whole(argument: str, x: object, least: int) -> int:
    """`x` is an integer (not a bool) of at least `least`."""
    if isinstance(x, bool) or not isinstance(x, int) or x < least:
        raise wrong(argument, repr(x), f"an integer >= {least}")
    return x


def choice(argument: str, x: object, names: Iterable[str]) -> str:
    """`x` is one of `names`; the message suggests the nearest."""
    names = list(names)
    if isinstance(x, str) and x in names:
        return x
    near = difflib.get_close_matches(str(x), names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise wrong(argument, repr(x), "one of " + ", ".join(names) + hint)


def ids(argument: str, x: torch.Tensor, dims: int, layout: str, vocab: int) -> torch.Tensor:
    """`x` holds token ids: integers from 0 to vocab-1. Their range is asked where the answer is at hand: on a GPU the
    question would make the host wait for the device, and there the embedding refuses them by itself."""
    tensor(argument, x, dims, layout, floating=False)
    if x.is_floating_point() or x.is_complex() or x.dtype == torch.bool:
        raise wrong(argument, f"dtype {x.dtype}", "integer token ids")
    if x.device.type != "cpu" or torch.compiler.is_compiling():
        return x.long()
    low, high = torch.stack(torch.aminmax(x)).tolist()
    if low < 0 or high >= vocab:
        raise wrong(argument, f"ids from {low} to {high}", f"0 to {vocab - 1} (vocab {vocab})")
    return x.long()
