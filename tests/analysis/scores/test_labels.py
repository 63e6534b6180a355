"""What designs are called where they differ in more than pooler and attention."""

from analysis.manifests.compared_keys import factor_value
from analysis.manifests.designs import Design, labelled, usual_note
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


def test_twins_are_told_apart_by_what_their_folders_name():
    """A mean without EOS beside one with it, and their starts."""
    both = [
        Design(f"{study}__mean-bi{end}", study, "mean", "bi", not end)
        for study in ("bundled", "bundled+pooler.pool_eos-false")
        for end in ("", "-untrained")
    ]
    other = [Design("bundled__eos-bi", "bundled", "eos", "bi"), Design("x__eos-bi", "x", "eos", "bi")]
    without = "mean-bi pooler.pool_eos-false"
    assert names(both[2:]) == [without, f"{without} (untrained)"], "alone on a page, too"
    assert names(both) == ["mean-bi", "mean-bi (untrained)", without, f"{without} (untrained)"]
    assert names(other) == [design.model for design in other]


def test_a_base_by_its_path_is_not_called_by_the_name_of_another():
    tiny, own = (manifest("mean", "bi", model__path=path) for path in ("assets/tiny", "/my/base"))
    assert [factor_value(one, "model") for one in (tiny, own)] == ["tiny", "/my/base"]


def test_what_is_not_there_is_not_named():
    two = designs({"init.merge": "none"}, {"init.merge": "mntp"})
    assert names(two) == ["mean-bi", "mean-bi merge=mntp"]
    assert usual_note(two) == []


def test_a_whole_group_as_factor_says_what_was_done_before_and_not_where_it_lies():
    """The runs that a seed starts from lie in folders of that seed; other runs, or other shares, are another value."""

    def value(seed, run="torch", density=0.2):
        path = f"runs/{run}/eos-causal/seed{seed}"
        start = [{"run": f"{run}/eos-causal/seed{seed}", "objective": "next_token"}]
        return factor_value(
            manifest("eos", "causal", seed, init__lora=[path], init__density=density, _start=start), "init"
        )

    assert value(0) == value(1)
    assert len({value(0), value(0, run="stdlib"), value(0, density=0.5)}) == 3


def test_a_run_is_named_by_its_study_without_what_a_sweep_added_before():
    runs = [f"lm+{k}-retrieval/mean-bi,lm+{k}-sts/mean-bi" for k in "ab"]
    two = designs(*({"adapter.experts": value} for value in runs))
    assert names(two) == ["mean-bi experts=a-retrieval,a-sts", "mean-bi experts=b-retrieval,b-sts"]
    own = designs({"adapter.experts": "science+c45c/mean-bi,medical+d78e/mean-bi"}, {"adapter.experts": "none"})
    assert names(own) == ["mean-bi experts=science,medical", "mean-bi"]
