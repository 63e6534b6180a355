"""Train one cell of the grid, or a sweep of cells: `python train.py pooler=multilayer attn=bi`."""

import sys
from pathlib import Path
from typing import Any

from cli.errors import guard


def run(config: dict[str, Any]) -> None:
    """Train the run of a job's configuration."""
    from training.run import run as train  # imports torch: not for what Hydra alone can print

    train(config)


def finished(words: list[str], folder: str) -> bool:
    """Tell whether the run of these words, whose folder is known, is finished, so that its command would do nothing."""
    from cli.compose import composed, plain
    from cli.quoting import train_words
    from records.run_folder import RunFolder
    from training.run import finished as is_finished

    return is_finished(plain(composed("train", train_words(words))), RunFolder(Path(folder)))


def main() -> None:
    """Compose the configuration, refuse what is misspelt, and hand each job to its objective."""
    import hydra

    from cli.compose import CONF, check_overrides, composed, params_of_sweeps
    from cli.help import help_screen
    from cli.hydra_flags import SHOWN, flags_first, job_config, printed_whole, read_flags
    from cli.quoting import train_words
    from studies.launchers import launcher_words
    from studies.sweep import Jobs

    words = train_words(sys.argv[1:])
    flags = read_flags(words)
    if flags.help:
        print(help_screen("train"))
        return
    sys.argv[1:] = flags_first(words, flags)
    if not flags.shell_completion:  # its words are no keys of ours
        swept = check_overrides("train", words)
        if swept and not any(word.startswith("axes=") for word in words):
            sys.argv.append(f"axes=[{','.join(swept)}]")
    if flags.cfg == "job":
        print(job_config(composed("train", flags.overrides), flags), end="")
        return
    jobs, launcher = Jobs(run), launcher_words(flags.overrides)
    sys.argv += launcher
    shown = any(getattr(flags, name) for name in SHOWN)
    if not shown and (flags.multirun or launcher or params_of_sweeps(words)):
        jobs.plan(flags.overrides)
    start = hydra.main(config_path=str(CONF), config_name="train", version_base="1.3")(jobs.run)
    with jobs.told(), printed_whole(flags):
        start()


if __name__ == "__main__":
    guard(main)
