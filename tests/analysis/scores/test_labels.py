"""What designs are called where they differ in more than pooler and attention."""

from analysis.manifests.designs import Design
from analysis.scores.labels import labels, usual_note


def designs(*factors):
    return [
        Design(f"m{k}", pooler="mean", attn="bi", factors={"pooler": "mean", "attn": "bi", **own})
        for k, own in enumerate(factors)
    ]


def test_the_value_of_most_designs_is_not_named_and_a_note_says_it():
    three = designs({"template": "instruct"}, {"template": "instruct"}, {"template": "echo"})
    two = [three[0], three[2]]
    assert list(labels(two).values()) == ["mean-bi template=instruct", "mean-bi template=echo"]
    assert usual_note(two) == []
    cells = [
        Design(f"c{k}", pooler=p, attn="bi", factors=three[k].factors) for k, p in enumerate(("eos", "mean", "mean"))
    ]
    assert list(labels(cells).values()) == ["eos-bi", "mean-bi", "mean-bi template=echo"]
    assert usual_note(cells) == ["Where a name does not say otherwise, template is instruct."]


def test_what_is_not_there_is_not_named():
    two = designs({"lineage": "none"}, {"lineage": "mntp"})
    assert list(labels(two).values()) == ["mean-bi", "mean-bi lineage=mntp"]
    assert usual_note(two) == []
