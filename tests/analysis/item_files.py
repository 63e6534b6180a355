"""Write item files beside the scores of a study, as evaluate.py does."""

import json


def item_files(study, values, statistic="ndcg_at_10", truth=None, *, task="Retrieval0", seed=0):
    """Write the items of one task for designs -> values: scores, or predictions where there is a truth."""
    for design, own in values.items():
        (folder,) = study.root.glob(f"results/s__{design}/seed{seed}@*")
        place = study.root / "predictions" / folder.parent.name / folder.name
        place.mkdir(parents=True, exist_ok=True)
        entry = {"statistic": statistic, "ids": [f"q{k}" for k in range(len(own))]}
        entry |= {"kind": "mean", "values": list(own)} if truth is None else {}
        entry |= {} if truth is None else {"kind": "spearman", "predicted": list(own), "truth": list(truth)}
        about = {"task": task, "splits": {"test": {"default": entry}}}
        (place / f"{task}_items.json").write_text(json.dumps(about))
