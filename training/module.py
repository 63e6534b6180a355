"""One optimiser step on one global batch, as a LightningModule, for every objective that trains an encoder."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Generic, Self, TypeVar

import pytorch_lightning as pl
import torch
from torch import Tensor
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

from cli.errors import UserError
from encoders.mixse import mixture_of
from encoders.tokens import Tokens
from training.batches import BatchOrder, MixOrder, roll
from training.large_batch import refuse_step
from training.objectives.objective import Objective

T = TypeVar("T")
RECENT = 10  # losses whose mean is the run's final loss
POSITION = ("batch_order_sha256", "tokens", "tokens_run", "tokens_spared", "seconds", "recent_losses")  # in checkpoints


class Prefetcher(Generic[T]):
    """Calls `make(step)` for one step after another, each in a thread from when the step before it is taken.

    make: a function of the step's number and nothing else. It is never called for step `steps` or later.
    """

    def __init__(self, make: Callable[[int], T], steps: int) -> None:
        self.make, self.steps = make, steps
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="prefetch")
        self._begun: dict[int, Future[T]] = {}

    def take(self, step: int) -> T:
        """Return `make(step)` and begin `make(step + 1)`. What `make` raises is raised here, at its own step."""
        begun = self._begun.pop(step, None)
        result = begun.result() if begun else self.make(step)
        self._begun = {step + 1: self._thread.submit(self.make, step + 1)} if step + 1 < self.steps else {}
        return result


class StepModule(pl.LightningModule):
    """The loss of `objective` on the batches of `order`; only adapter and head are trained and saved.

    The step number alone decides which batch is seen and what dropout draws; the data loader is only a clock.
    """

    def __init__(self, objective: Objective, order: BatchOrder | MixOrder, cfg: dict[str, Any]) -> None:
        super().__init__()
        self.automatic_optimization = False
        self.strict_loading = False  # checkpoints hold what is trained, not the frozen base
        self.encoder, self.threads = objective.work.encoder, torch.get_num_threads()
        self.objective, self.order, self.cfg = objective, order, cfg
        self.batch_order_sha256 = ""
        self.tokens = 0
        self.tokens_run, self.tokens_spared = 0, 0  # with padding; and those that GradCache runs once alone
        self.seconds = 0.0  # inside the steps, those before an interruption too
        self.recent_losses: list[float] = []
        self.decay_steps = decay_steps(cfg, order.steps_per_epoch)
        self.prefetcher = Prefetcher(self.prepared, cfg["trainer"]["max_steps"])

    def cpu(self) -> Self:
        """Stay: Lightning would copy the base of every process into host memory after the last step."""
        return self

    def prepared(self, step: int) -> tuple[Sequence[int], Any, list[Tokens]]:
        """Return the examples of a step, their layout and the rows that are run."""
        examples = self.order.batch(step)
        return examples, *self.objective.lay_out(examples, step)

    def on_train_start(self) -> None:
        """Let all processes cut the batches alike: each has found for itself what fits. Keep the threads of the run."""
        torch.set_num_threads(self.threads)  # Lightning's launcher has set its own number
        self.objective.work.resize(self.objective.work.plan.token_budget)

    def training_step(self, _tick: Any, _index: int) -> Tensor:
        """Take one step: chunked forward passes, loss over the global batch, backward, clip, update."""
        start = time.perf_counter()
        step = self.global_step
        examples, layout, rows = self.prefetcher.take(step)
        loss = self.objective.backward(layout, rows, step)
        self._update(loss, step, examples)
        tokens = sum(map(len, rows))
        self.batch_order_sha256 = roll(self.batch_order_sha256, step, examples)
        self.tokens += tokens
        run, spared = self.objective.work.run_tokens(rows)
        self.tokens_run, self.tokens_spared = self.tokens_run + run, self.tokens_spared + spared
        self.recent_losses = [*self.recent_losses, loss.item()][-RECENT:]
        taken = time.perf_counter() - start
        self.seconds += taken
        self.log_dict({"loss": loss, "tokens/s": tokens / taken}, prog_bar=True, batch_size=1)
        return loss

    def _update(self, loss: Tensor, step: int, examples: Sequence[int]) -> None:
        """Clip and step; nothing is changed where loss or gradient are not finite."""
        optimizer, schedule = self.optimizers(), self.lr_schedulers()
        clip, trained = self.cfg["trainer"]["gradient_clip"], self.trained()
        norm = get_total_norm([p.grad for p in trained.values() if p.grad is not None])
        first = self.objective.examples[examples[0]].query[:40]
        refuse_step({"loss": loss, "gradient norm": norm}, step, f"; examples {examples[:4]}..., first query {first!r}")
        if clip:
            clip_grads_with_norm_(trained.values(), clip, norm)
        optimizer.step()  # type: ignore[union-attr]
        schedule.step()  # type: ignore[union-attr]
        optimizer.zero_grad()  # type: ignore[union-attr]

    def trained(self) -> dict[str, torch.nn.Parameter]:
        """Return the parameters that are trained, by name."""
        return {name: p for name, p in self.named_parameters() if p.requires_grad}

    def learning_rate_factor(self, step: int) -> float:
        """Linear warm-up over `warmup` steps, then linear decay that would be zero at step `decay_steps`."""
        warmup = self.warmup
        if step < warmup:
            return (step + 1) / warmup
        return (self.decay_steps - step) / max(1, self.decay_steps - warmup)

    @property
    def warmup(self) -> int:
        """Steps of the warm-up, at most those of the run, so that the rate peaks."""
        return min(self.cfg["objective"]["warmup"], self.cfg["trainer"]["max_steps"])

    def configure_optimizers(self) -> Any:
        """AdamW over adapter, router of experts and head, each with its own learning rate."""
        o, mixture = self.cfg["objective"], mixture_of(self.encoder.backbone)
        router = [p for p in mixture.parameters() if p.requires_grad] if mixture else []
        adapter = [p for p in self.encoder.backbone.parameters() if p.requires_grad and all(p is not r for r in router)]
        head = [p for p in self.encoder.pooler.parameters() if p.requires_grad]
        parts = ((adapter, None), (router, self.cfg.get("adapter", {}).get("lr")), (head, o["head_lr"]))
        rates = ((parameters, o["lr"] if lr is None else lr) for parameters, lr in parts)
        groups = [{"params": parameters, "lr": lr} for parameters, lr in rates if parameters]
        optimizer = torch.optim.AdamW(groups, weight_decay=o["weight_decay"])
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, self.learning_rate_factor)
        return {"optimizer": optimizer, "lr_scheduler": schedule}

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Keep trained parameters only, and the position."""
        trained = self.trained()
        checkpoint["state_dict"] = {k: v for k, v in checkpoint["state_dict"].items() if k in trained}
        checkpoint["position"] = {name: getattr(self, name) for name in POSITION}
        checkpoint["counts"] = dict(self.objective.counts)
        checkpoint["token_budget"] = self.objective.work.plan.token_budget

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Take up the position, and go on with the same chunks."""
        self.objective.work.resize(checkpoint["token_budget"])
        for name in POSITION:
            setattr(self, name, checkpoint["position"][name])
        self.objective.counts.update(checkpoint["counts"])


def decay_steps(cfg: dict[str, Any], steps_per_epoch: int) -> int:
    """Return the step at which the learning rate would be zero. Raises `UserError` where that is before the last step.

    `objective.decay_epochs` is for recipes that stop long before their schedule ends.
    """
    steps, epochs = int(cfg["trainer"]["max_steps"]), cfg["objective"].get("decay_epochs")
    end = steps if epochs is None else round(epochs * steps_per_epoch)
    if end < steps:
        raise UserError(
            f"objective.decay_epochs={epochs:g} ends at step {end:,}, before trainer.max_steps={steps:,}. Raise it, "
            "lower max_steps, or give objective.decay_epochs=null."
        )
    return end
