"""Hydra's own launchers under one word: launcher=slurm is `hydra/launcher=submitit_slurm` and its settings."""

import os
from collections.abc import Sequence
from importlib.util import find_spec
from shutil import which

from omegaconf import OmegaConf

from cli.compose import composed
from cli.errors import UserError
from cli.remarks import HOME

PLUGIN = {  # launcher -> module of the plugin, extra of pyproject.toml, Hydra's name
    "joblib": ("hydra_joblib_launcher", "joblib", "joblib"),
    "slurm": ("hydra_submitit_launcher", "slurm", "submitit_slurm"),
    "slurm_local": ("hydra_submitit_launcher", "slurm", "submitit_local"),
}
SETTINGS = {  # launcher -> key of Hydra's -> our key
    "joblib": {"n_jobs": "launcher.jobs"},
    "slurm": {
        **{key: f"launcher.{key}" for key in ("partition", "account", "qos", "constraint", "setup")},
        "timeout_min": "launcher.minutes",
        "cpus_per_task": "launcher.cpus",
        "mem_gb": "launcher.memory",
        "gpus_per_node": "launcher.gpus",
        "array_parallelism": "launcher.at_once",
        "additional_parameters": "launcher.more",
    },
    "slurm_local": {"timeout_min": "launcher.minutes"},
}
OF_SLURM = ("srun", "sbatch")  # the commands by which submitit reaches it
PROCESSES = {  # program -> key of Hydra's -> our key
    "train": {"nodes": "trainer.num_nodes", "tasks_per_node": "trainer.devices"},
}


def launcher_words(words: Sequence[str], program: str = "train") -> list[str]:
    """Return what `launcher=<name>` among the words of train.py or evaluate.py means to Hydra; none for launcher=none.

    Jobs find this checkout by PYTHONPATH, wherever they start. Raises `UserError` where the extra is not installed, or
    SLURM is not there.
    """
    asked = [word for word in words if word.startswith("launcher")]
    if not asked:
        return []
    config = composed(program, asked)
    name = config["launcher"]["name"]
    if name not in PLUGIN:
        return []
    module, extra, hydra_name = PLUGIN[name]
    if not find_spec("hydra_plugins") or not find_spec(f"hydra_plugins.{module}"):
        raise UserError(f'launcher={name} needs a package of the extra {extra}. Install it: pip install ".[{extra}]".')
    absent = [command for command in OF_SLURM if not which(command)] if name == "slurm" else []
    if absent:
        raise UserError(
            f"launcher=slurm submits jobs to SLURM, and this machine has no {' and no '.join(absent)}. Give the command"
            " on a machine that submits to a cluster, or launcher=slurm_local, launcher=joblib or launcher=none here."
        )
    places = [str(HOME), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(places)
    given = {key: ours for key, ours in SETTINGS[name].items() if OmegaConf.select(config, ours) is not None}
    if name == "slurm":
        given = {"gpus_per_node": PROCESSES[program]["tasks_per_node"], **given, **PROCESSES[program]}
    settings = [f"hydra.launcher.{key}=${{{ours}}}" for key, ours in given.items()]
    return [f"hydra/launcher={hydra_name}", "hydra.mode=MULTIRUN", *settings]
