"""A tour of the program: each row of the mission as its commands, two steps each, on few pairs and two small tasks."""

import json
import shlex
from pathlib import Path

import pytest

from tests.started import start
from tests.triples import WORDS, write_triples

pytestmark = pytest.mark.slow

SHOWN = "trainer.max_steps=2 trainer.global_batch_size=8 objective.warmup=1 max_length=32"
STEPS = f"{SHOWN} trainer.progress=lines logging.tensorboard=false"  # half a second of imports less
PAIRS = f"data=jsonl data.path=pairs.jsonl data.validation=4 {STEPS}"
MINED = f"data=jsonl data.path=mined.jsonl data.validation=4 {STEPS}"
TEXT = f"data=text data.path=text.txt data.validation=2 pooler=mean attn=bi study=tour {STEPS}"
SCORED = "tasks_dir=tasks progress=false"
EXPERT = f"pooler=mean attn=bi {PAIRS}"
BOTH = "[runs/experts/mean-bi/seed0,runs/experts/mean-bi/seed1]"

TOUR = {
    "five cells": [
        f"train.py -m design=model1,model2,model3,model4,model5 study=tour {PAIRS}".replace(STEPS, SHOWN),
        f"evaluate.py run='runs/tour/*/seed0' {SCORED}",
        "-m analysis scores=runs/tour/scores against=eos-causal report=true",
    ],
    "a study by one command": [f"study.py designs=[mean-bi] seeds=[0] pooler.pool_eos=false tasks_dir=tasks {PAIRS}"],
    "published designs": [
        "train.py -m design=sgpt,bellm,nv_embed,echo,prompteol,repllama,e5,gritlm,matryoshka study=tour " + PAIRS,
    ],
    "a sweep by a launcher": [
        f"train.py -m hydra/launcher=submitit_local pooler=lastlayer pooler.tokens=last,mean {PAIRS}"
    ],
    "LLM2Vec": [
        f"train.py objective=mntp {TEXT}",
        f"train.py objective=simcse init=mntp {TEXT}",
        f"train.py design=llm2vec study=tour {PAIRS}",
        f"evaluate.py run='runs/tour+*/mean-bi/seed0' untrained=also {SCORED}",
        "-m representation run='runs/tour+*/mean-bi/seed0' tables=[causal_against_bi,read_ahead] tasks_dir=tasks "
        "read_ahead.triples=8 out=why",
    ],
    "MoEE": [
        f"train.py -m design=moee,moee_routing,moee_head model=tiny_moe study=tour {PAIRS}",
        f"evaluate.py run=null model=tiny_moe variants=[mean,moee:hidden,moee:routing,moee:sum@0.5] {SCORED}",
        "-m representation run=null model=tiny_moe tasks_dir=tasks tables=[prompts] out=moee",
    ],
    "self-specialised experts": [
        "-m training.specialise data=jsonl data.path=pairs.jsonl data.validation=4 out=new.jsonl pairs=4 attempts=2 "
        "seeds=8 query_tokens=8 answer_tokens=8",
        f"train.py -m seed=0,1 study=experts {EXPERT}",
        f"train.py {EXPERT} study=mixse adapter=mixse adapter.experts={BOTH}",
        f"train.py {EXPERT} study=joint adapter=mixse adapter.experts=2 adapter.trains=experts",
        f"train.py {EXPERT} study=ties init.lora={BOTH} init.combine=ties",
        "train.py objective=next_token attn=causal " + TEXT.replace("attn=bi ", ""),
    ],
    "mining, distillation, mixes": [
        f"train.py study=tour {PAIRS}",
        "-m training.mine run=runs/tour/eos-causal/seed0 data=jsonl data.path=pairs.jsonl data.validation=4 "
        "out=mined.jsonl percent=null",
        f"train.py study=hard objective.hard_negatives=1 {MINED}",
        f"train.py study=distil objective=distil {MINED}",
        f"train.py study=mix data=mix data.mix.classes=0.5 {STEPS}",
    ],
    "faults of the published code": [f"train.py -m reference_fault=one_key,all study=tour pooler=lastlayer {PAIRS}"],
    "a frozen base, and an export": [
        f"train.py pooler=multilayer attn=bi backbone.frozen=true study=frozen {PAIRS}",
        "-m encoders.export run=runs/frozen/multilayer-bi/seed0 to=exported",
    ],
    "cost, counted without weights": ["train.py experiment=paper/mistral_7b design=model5 check=true"],
}


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with forty pairs and two tasks, where a command starts."""
    cache = Path("cache").resolve()
    monkeypatch.chdir(tmp_path)
    Path("cache").symlink_to(cache)
    write_triples(Path("pairs.jsonl"))
    lines = (f"The {a} of the {b} is returned as {a}." for a in WORDS for b in WORDS[:3])
    Path("text.txt").write_text("\n\n".join(lines))
    _write("tasks/Pairs/task.json", [{"name": "Pairs", "type": "STS"}])
    graded = [
        {"sentence1": f"the {a}", "sentence2": f"a {b}", "score": (i + k) % 5}
        for i, a in enumerate(WORDS)
        for k, b in enumerate(WORDS[:3])
    ]
    _write("tasks/Pairs/test.jsonl", graded)
    _write("tasks/Find/task.json", [{"name": "Find", "type": "Retrieval"}])
    documents = [{"_id": f"d{i}", "title": "", "text": f"returned {a}"} for i, a in enumerate(WORDS)]
    _write("tasks/Find/corpus.jsonl", documents)
    _write("tasks/Find/queries.jsonl", [{"_id": f"q{i}", "text": f"the {a}"} for i, a in enumerate(WORDS)])
    rows = "".join(f"q{i}\td{i}\t1\n" for i in range(len(WORDS)))
    Path("tasks/Find/qrels").mkdir()
    Path("tasks/Find/qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\n" + rows)
    return tmp_path


def _write(path, records):
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text("".join(json.dumps(record) + "\n" for record in records))


@pytest.mark.parametrize("row", TOUR)
def test_every_row_runs(row, place):
    for command in TOUR[row]:
        done = start(*shlex.split(command))
        assert done.returncode == 0, f"{command}\n{done.stderr[-3000:]}"
