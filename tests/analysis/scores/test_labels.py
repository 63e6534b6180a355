"""What designs are called where they differ in more than pooler and attention."""

from analysis.manifests.compared_keys import factor_value
from analysis.manifests.designs import Design
from analysis.scores.labels import labelled, usual_note
from tests.analysis.manifests import manifest


def designs(*factors):
    return [
        Design(f"m{k}", pooler="mean", attn="bi", factors={"pooler": "mean", "attn": "bi", **own})
        for k, own in enumerate(factors)
    ]


def names(every):
    return list(labelled({design.model: design for design in every}))


def test_the_value_of_most_designs_is_not_named_and_a_note_says_it():
    three = designs({"template": "instruct"}, {"template": "instruct"}, {"template": "echo"})
    two = [three[0], three[2]]
    assert names(two) == ["mean-bi template=instruct", "mean-bi template=echo"]
    assert usual_note(two) == []
    cells = [
        Design(f"c{k}", pooler=p, attn="bi", factors=three[k].factors) for k, p in enumerate(("eos", "mean", "mean"))
    ]
    assert names(cells) == ["eos-bi", "mean-bi", "mean-bi template=echo"]
    assert usual_note(cells) == ["Where a name does not say otherwise, template is instruct."]


def test_what_is_not_there_is_not_named():
    two = designs({"lineage": "none"}, {"lineage": "mntp"})
    assert names(two) == ["mean-bi", "mean-bi lineage=mntp"]
    assert usual_note(two) == []


def test_runs_in_a_name_are_called_by_what_they_differ_in():
    one, two, more = (f"x+data-f+mixture-{name}/mean-bi" for name in ("one", "two", "two+trainer.max_steps-6"))
    experts = [f"{one},{two}", f"{one},{more}", "4"]
    found = names(designs(*({"adapter.experts": runs} for runs in experts)))
    assert found == [
        "mean-bi experts=mixture-one,mixture-two",
        "mean-bi experts=mixture-one,mixture-two+trainer.max_steps-6",
        "mean-bi experts=4",
    ]


def test_a_single_run_and_runs_that_would_look_alike_keep_their_names():
    alone = names(designs({"lora.start": "x/mean-bi"}, {"lora.start": "none"}))
    assert alone[0] == "mean-bi start=x/mean-bi"
    turned = [{"lora.start": "a+b-1+c-2/mean-bi"}, {"lora.start": "a+c-2+b-1/mean-bi"}]
    assert names(designs(*turned)) == [f"mean-bi start={own['lora.start']}" for own in turned]


def test_a_whole_group_as_factor_says_what_was_done_before_and_not_where_it_lies():
    """The runs that a seed starts from lie in folders of that seed; other runs, or another rank, are another value."""

    def value(seed, run="torch", rank=16):
        path = f"runs/{run}/eos-causal/seed{seed}"
        start = [{"run": f"{run}/eos-causal/seed{seed}", "objective": "next_token"}]
        return factor_value(manifest("eos", "causal", seed, lora__start=[path], lora__r=rank, _start=start), "lora")

    assert value(0) == value(1)
    assert len({value(0), value(0, run="stdlib"), value(0, rank=64)}) == 3
