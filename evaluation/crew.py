"""Several processes encode for one evaluation: the first asks mteb and keeps the vectors, the others encode for it.

Chunks are cut as one process cuts them and dealt out whole, by tokens. So a vector has the same company and, on the
same kind of device, the same bits as in one process.
"""

import multiprocessing
import os
import pickle
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import islice
from typing import Any

import torch
import torch.distributed as dist

from cli.errors import UserError
from encoders.chunking import Chunk
from encoders.precision import best_device
from evaluation.candidates.candidates import Candidate
from evaluation.candidates.shared import Prefix, ReadingEncoder
from evaluation.embeddings.store import Encoder

ROUND = 16  # chunks of a process between two exchanges: what a kill costs, and what must fit into memory twice
PATIENCE = timedelta(days=30)  # of processes that wait while mteb does its own work
Part = tuple[Chunk, Any]  # indices, and their vectors, or those of each reading


@dataclass(frozen=True)
class Share:
    """A process's share of a round: the parts of each of its chunks, its texts and tokens, or what went wrong."""

    parts: list[list[Part]]
    texts: int = 0
    tokens: int = 0
    error: Exception | None = None


@dataclass(frozen=True)
class Crew:
    """The processes of an evaluation; this one is the first. threads: CPU threads of each; None: torch's own choice."""

    size: int
    threads: int | None

    def load(self, candidate: Candidate) -> Encoder:
        """Load the candidate in every process; return it with its texts dealt out. Raises what one of them raises."""
        whole = replace(candidate, dim=None, siblings=None) if candidate.dim else candidate
        _from_first([pickle.dumps(whole), self.threads])
        try:
            return self._dealt(candidate.load())
        finally:
            _raise_first(_collected(None))

    def _dealt(self, encoder: Any) -> Any:
        """The encoder, with what runs its forward passes replaced by one that deals them out."""
        if isinstance(encoder, ReadingEncoder):
            if not isinstance(encoder.group.loaded, Dealt):
                encoder.group.loaded = Dealt(encoder.group.loaded, encoder.group.loaded.text_encoder)
        elif isinstance(encoder, Prefix):
            if not isinstance(encoder.whole.encoder, Dealt):
                encoder.whole.encoder = Dealt(encoder.whole.encoder, encoder.whole.encoder)
        else:
            return Dealt(encoder, encoder)
        return encoder


class Dealt:
    """An encoder, or the readings of one, whose texts are encoded by all processes. text_encoder: it cuts them."""

    def __init__(self, source: Any, text_encoder: Any) -> None:
        self.source, self.text_encoder = source, text_encoder

    def __getattr__(self, name: str) -> Any:
        return getattr(self.source, name)

    def parts(self, texts: Sequence[str], instruction: str = "") -> Iterator[Part]:
        """Yield (indices of texts, their vectors), as the source does, round by round."""
        meter = self.text_encoder.meter
        cut = iter(self.text_encoder.chunks(texts, instruction))
        while chunks := list(islice(cut, ROUND * dist.get_world_size())):
            hands = deal([tokens for _, tokens in chunks], dist.get_world_size())
            wanted = [[[texts[i] for i in chunks[k][0]] for k in hand] for hand in hands]
            _from_first(instruction)
            dist.scatter_object_list([None], [pickle.dumps(part) for part in wanted])
            mine = _encoded(self.source, self.text_encoder, wanted[0], instruction)
            started = time.perf_counter()
            shares: list[Share] = _collected(mine)
            meter.seconds += time.perf_counter() - started  # what the slowest took longer
            _raise_first([share.error for share in shares])
            for share, hand in zip(shares, hands, strict=True):
                for k, parts in zip(hand, share.parts, strict=True):
                    for indices, vectors in parts:
                        yield [chunks[k][0][i] for i in indices], vectors
            meter.texts += sum(share.texts for share in shares[1:])
            meter.tokens += sum(share.tokens for share in shares[1:])


def deal(tokens: Sequence[int], hands: int) -> list[list[int]]:
    """Return the numbers of the chunks of each process: each goes to the one that has the fewest tokens so far."""
    dealt: list[list[int]] = [[] for _ in range(hands)]
    loads = [0] * hands
    for k, count in enumerate(tokens):
        hand = loads.index(min(loads))
        dealt[hand].append(k)
        loads[hand] += count
    return dealt


def _encoded(source: Any, text_encoder: Any, chunks: Sequence[Sequence[str]], instruction: str) -> Share:
    meter = text_encoder.meter
    texts, tokens = meter.texts, meter.tokens
    try:
        parts = [list(source.parts(chunk, instruction)) for chunk in chunks]
    except Exception as error:
        return Share([], error=_portable(error))
    return Share(parts, meter.texts - texts, meter.tokens - tokens)


def serve() -> None:
    """Encode for the first process until it says that all is done."""
    encoder: Any = None
    while (asked := _from_first()) is not None:
        if isinstance(asked, list):
            if asked[1] is not None:
                torch.set_num_threads(asked[1])
            try:
                encoder, failed = pickle.loads(asked[0]).load(), None
            except Exception as error:
                failed = _portable(error)
            dist.gather_object(failed)
            continue
        place: list[Any] = [None]
        dist.scatter_object_list(place)
        source = encoder.group.loaded if isinstance(encoder, ReadingEncoder) else encoder
        text_encoder = source.text_encoder if isinstance(encoder, ReadingEncoder) else source
        dist.gather_object(_encoded(source, text_encoder, pickle.loads(place[0]), asked))


def outer() -> Any:
    """Return the environment (Lightning's) of torchrun or SLURM where these started several processes, else None."""
    from lightning_fabric.plugins.environments import SLURMEnvironment, TorchElasticEnvironment

    environments = [kind() for kind in (TorchElasticEnvironment, SLURMEnvironment) if kind.detect()]
    return environments[0] if environments and environments[0].world_size() > 1 else None


def serve_if_other(idle: bool) -> None:
    """Encode for the first process, then leave, where torchrun or SLURM started this one and it is another.

    idle: there is nothing to encode.
    """
    place = outer()
    if place is None or place.global_rank() == 0:
        return
    if not idle:
        os.environ["LOCAL_RANK"] = str(place.local_rank())
        _join(_address(place), place.global_rank(), place.world_size())
    raise SystemExit(0)


@contextmanager
def crew(devices: int, threads: int | None, accelerator: str) -> Iterator[Crew | None]:
    """Yield the crew of an evaluation to its first process; None where it is alone.

    Under torchrun or SLURM the others are there, else `devices` - 1 processes are started. Raises `UserError` for more
    of them than there are GPUs.
    """
    place = outer()
    if place is None and devices == 1:
        yield None
        return
    if place is not None:
        address, size = _address(place), place.world_size()
        print(f"Encoding in {size} processes.", flush=True)
    else:
        gpus = torch.cuda.device_count() if best_device(accelerator).type == "cuda" else devices
        if devices > gpus:
            raise UserError(f"devices={devices}, but this machine has {gpus} GPU. Lower devices: scores stay the same.")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address, size = f"tcp://127.0.0.1:{free.getsockname()[1]}", devices
        context = multiprocessing.get_context("spawn")
        for rank in range(1, size):
            context.Process(target=_started, args=(address, rank, size), daemon=True).start()
    dist.init_process_group("gloo", address, rank=0, world_size=size, timeout=PATIENCE)
    try:
        yield Crew(size, threads)
        _from_first(None)
    finally:
        dist.destroy_process_group()


def _address(place: Any) -> str:
    """Return where the processes meet; torchrun's own agent holds its port, and says so in the environment."""
    torchrun = dist.is_torchelastic_launched()
    return "env://" if torchrun else f"tcp://{place.main_address}:{place.main_port}"


def _started(address: str, rank: int, size: int) -> None:
    from cli.quiet import quieten

    os.environ["LOCAL_RANK"] = str(rank)
    quieten()
    _join(address, rank, size)


def _join(address: str, rank: int, size: int) -> None:
    dist.init_process_group("gloo", address, rank=rank, world_size=size, timeout=PATIENCE)
    try:
        serve()
    except RuntimeError:  # the first process is gone, and says itself why
        os._exit(1)
    dist.destroy_process_group()


_OTHERS = object()


def _from_first(value: Any = _OTHERS) -> Any:
    """Return what the first process says to all: it calls this with the value, the others without."""
    place = [None if value is _OTHERS else value]
    dist.broadcast_object_list(place)
    return place[0]


def _collected(mine: Any) -> list[Any]:
    """Return what each process has, in the first one."""
    collected: list[Any] = [None] * dist.get_world_size()
    dist.gather_object(mine, collected)
    return collected


def _portable(error: Exception) -> Exception:
    """The error as another process can read it: exceptions with arguments of their own cannot be pickled."""
    return UserError(str(error)) if isinstance(error, UserError) else RuntimeError(f"{type(error).__name__}: {error}")


def _raise_first(errors: Sequence[Exception | None]) -> None:
    for error in filter(None, errors):
        raise error
