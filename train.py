"""Train one cell of the grid, or a sweep of cells: `python train.py pooler=multilayer attn=bi`."""

import sys

from records.errors import guard


def main() -> None:
    """Compose the configuration, refuse what is misspelt, and hand each job to its objective."""
    import hydra

    from records.arguments import joined_late, quoted_files
    from records.config import CONF, check_overrides
    from training.jobs import Jobs

    sys.argv[1:] = joined_late(quoted_files(sys.argv[1:]))
    check_overrides("train", sys.argv[1:])
    jobs = Jobs()
    hydra.main(config_path=str(CONF), config_name="train", version_base="1.3")(jobs.run)()
    jobs.close()


if __name__ == "__main__":
    guard(main)
