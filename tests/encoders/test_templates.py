"""How texts are written out: literal ids and roles of every template, on both sides, whole and cut."""

import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from cli.compose import composed, options, plain
from cli.errors import UserError
from corpora.triples import Triple
from encoders.loading import untrained
from encoders.templates import DEFAULT, GLUED, template_of
from encoders.tokens import TextTokenizer
from poolers.shared.base import BOS, ECHO, EOS, INSTRUCTION, LANDMARK, PAD, TEXT, TokenView
from tests.hub_model import HUB_MODELS
from training.objectives.infonce import candidates

NAMES = sorted(options("template"))
TEXTS = ["two arrays", "the sum of two arrays is returned as a new array.", "shape of the same type\nreturned "]
LONG = "the sum of two arrays is returned as a new array " * 40
INSTRUCTIONS = ["", "find the sum"]


def template(name, *words):
    return template_of(plain(composed("train", [f"template={name}", *words])))


@pytest.fixture(params=["small", *HUB_MODELS])
def tokenizer(request, model_folder):
    """Of the bundled kind and of the hub's, whose texts begin with BOS and a space."""
    return AutoTokenizer.from_pretrained(model_folder(request.param))


def ids_of(tokenizer, text):
    return tokenizer(text, add_special_tokens=False, split_special_tokens=True)["input_ids"]


def frame(rules):
    return ([] if rules.bos is None else [rules.bos]), ([rules.eos] if rules.template.eos else [])


def of_role(row, role):
    return [i for i, r in zip(row.ids, row.roles, strict=True) if r == role]


@pytest.mark.parametrize("max_length", [120, 256])
@pytest.mark.parametrize("instruction", INSTRUCTIONS)
def test_echo_holds_two_whole_equal_copies(tokenizer, instruction, max_length):
    rules = TextTokenizer(tokenizer, max_length, template=template("echo"))
    lead = f"Instruct: {instruction}\n" if instruction else ""
    first, second = (
        ids_of(tokenizer, w) for w in (lead + "Rewrite the following paragraph:", "\nThe rewritten paragraph:")
    )
    bos, eos = frame(rules)
    room = (max_length - len(bos) - 1 - len(first) - len(second)) // 2
    for text, row in zip([*TEXTS, LONG], rules([*TEXTS, LONG], instruction), strict=True):
        own = ids_of(tokenizer, text)[:room]
        assert row.ids == [*bos, *first, *own, *second, *own, *eos]
        words = [INSTRUCTION] * len(first), [INSTRUCTION] * len(second)
        assert row.roles == [*[BOS] * len(bos), *words[0], *[TEXT] * len(own), *words[1], *[ECHO] * len(own), EOS]
        assert of_role(row, TEXT) == of_role(row, ECHO)
        assert len(row) <= max_length
    assert len(row) >= max_length - 1, "the long text is cut, and no more than it must be"


def test_of_an_echo_the_second_copy_alone_is_pooled(small_model):
    rules = TextTokenizer(AutoTokenizer.from_pretrained(small_model), 128, "left", template("echo"))
    batch = rules.batch(rules(["two arrays", "the sum of the shape of arrays"]))
    view = batch.view
    for with_instruction in (False, True):
        assert torch.equal(view.pooled(with_instruction), batch.roles == ECHO)
    assert (batch.roles[0] == PAD).any()
    assert view.last().tolist() == [batch.roles.shape[1] - 1] * 2
    bare = TextTokenizer(rules.tokenizer, 128, template=template("echo", "template.eos=false"))
    (row,) = bare(["two arrays"])
    assert row.roles[-1] == ECHO, "without EOS the echo's own last token is the last"
    mixed = TokenView(torch.tensor([[BOS, TEXT, INSTRUCTION, ECHO, EOS], [INSTRUCTION, TEXT, EOS, PAD, PAD]]))
    assert mixed.pooled(False).tolist() == [[False, False, False, True, False], [False, True, True, False, False]]


@pytest.mark.parametrize("max_length", [48, 256])
def test_prompteol_ends_with_its_prompt_whatever_the_text(tokenizer, max_length):
    rules = TextTokenizer(tokenizer, max_length, template=template("prompteol"))
    before, after = ids_of(tokenizer, 'This sentence: "'), ids_of(tokenizer, '" means in one word:"')
    bos, _ = frame(rules)
    room = max_length - len(bos) - len(before) - len(after)
    for text, row in zip([*TEXTS, LONG], rules([*TEXTS, LONG]), strict=True):
        assert row.ids == [*bos, *before, *ids_of(tokenizer, text)[:room], *after]
        assert row.roles[-1] == INSTRUCTION
        assert of_role(row, TEXT) == ids_of(tokenizer, text)[:room]
    assert len(row) == max_length
    batch = rules.batch(rules(TEXTS))
    assert batch.input_ids[range(3), batch.view.last()].tolist() == [after[-1]] * 3


@pytest.mark.parametrize(("every", "max_length"), [(3, 256), (3, 16), (4, 16), (1, 9), (64, 20)])
def test_landmarks_follow_every_so_many_tokens_and_the_closing_eos_is_the_last(tokenizer, every, max_length):
    rules = TextTokenizer(tokenizer, max_length, template=template("landmark", f"template.landmarks={every}"))
    bos, _ = frame(rules)
    for text, row in zip([*TEXTS, LONG], rules([*TEXTS, LONG]), strict=True):
        pairs = [(i, BOS) for i in bos]
        for place, id_ in enumerate(ids_of(tokenizer, text)):
            pairs += [(rules.eos, LANDMARK)] * (place > 0 and place % every == 0) + [(id_, TEXT)]
        pairs = pairs[: max_length - 1]
        pairs = pairs[:-1] if pairs[-1][1] == LANDMARK else pairs
        assert list(zip(row.ids, row.roles, strict=True)) == [*pairs, (rules.eos, LANDMARK)]
    view = rules.batch(TextTokenizer(tokenizer, 256, template=rules.template)(TEXTS, "find the sum")).view
    assert torch.equal(view.pooled(True), view.roles == LANDMARK)


@pytest.mark.parametrize("attn", ["causal", "bi"])
def test_with_landmarks_the_mean_is_over_their_states(small_model, attn):
    words = [f"model.path={small_model}", f"attn={attn}", "template=landmark", "template.landmarks=4"]
    made = untrained(plain(composed("evaluate", [*words, "pooler=mean", "precision=fp32", "normalize=false"])))
    decoder = AutoModel.from_pretrained(small_model, dtype=torch.float32, attn_implementation="eager").eval()
    for text in TEXTS:
        own, ids = ids_of(made.tokenizer.tokenizer, text), list[int]()
        for start in range(0, len(own), 4):
            ids += [*own[start : start + 4], made.tokenizer.eos]
        unseen = torch.ones(len(ids), len(ids)).triu(1).bool() & (attn == "causal")
        mask = torch.zeros(1, 1, *unseen.shape).masked_fill(unseen, -1e30)
        with torch.no_grad():
            states = decoder(torch.tensor([ids]), attention_mask=mask).last_hidden_state[0]
        wanted = states[[*range(4, len(ids) - 1, 5), len(ids) - 1]].mean(dim=0)
        assert abs(made.encode([text])[0] - wanted.numpy()).max() < 1e-5


SIDED = [
    ("e5", "", "query: two arrays", "passage: two arrays"),
    ("e5", "find the sum", "query: two arrays", "passage: two arrays"),
    ("repllama", "", "query: two arrays", "passage: two arrays"),
    ("gritlm", "", "<|embed|>\ntwo arrays", "<|embed|>\ntwo arrays"),
    ("gritlm", "find the sum", "<|user|>\nfind the sum\n<|embed|>\ntwo arrays", None),
    ("instruct", "find the sum", "Instruct: find the sum\nQuery: two arrays", None),
]


@pytest.mark.parametrize(("name", "instruction", "query", "document"), SIDED)
def test_each_side_is_written_as_published(tokenizer, name, instruction, query, document):
    rules = TextTokenizer(tokenizer, 256, template=template(name))
    bos, eos = frame(rules)
    assert rules.template.eos == (name != "gritlm")
    for side, written in (("query", query), ("document", query if document is None else document)):
        (row,) = rules(["two arrays"], rules.template.asked(instruction, side))
        assert row.ids == [*bos, *ids_of(tokenizer, written), *eos]
        ends = [
            end
            for _, end in tokenizer(written, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
        ]
        wanted = [TEXT if end > len(written) - len("two arrays") else INSTRUCTION for end in ends]
        assert row.roles == [*[BOS] * len(bos), *wanted, *[EOS] * len(eos)]


def test_what_a_template_cannot_be():
    with pytest.raises(UserError, match=r"must hold \{text\} once"):
        template("e5", "template.query.bare='query: '")
    for words in (["template.eos=false"], ["template.query.bare='{text} again'"]):
        with pytest.raises(UserError, match=r"landmarks needs forms that end in \{text\}, and template.eos=true"):
            template("landmark", *words)
    with pytest.raises(UserError, match="where the text goes"):
        DEFAULT.asked("find {text}", "query")
    assert GLUED.form("find") == "find{text}"


def test_a_batch_tells_the_sides_apart_only_where_the_template_does():
    triples = [Triple("a", "b"), Triple("b", "a")]
    plain_texts = candidates(triples, None, 0, template=DEFAULT).texts
    assert plain_texts == [("", "a"), ("", "b")]
    e5 = candidates(triples, None, 0, template=template("e5"))
    query, document = "query: {text}", "passage: {text}"
    assert e5.texts == [(query, "a"), (query, "b"), (document, "b"), (document, "a")]
    both = candidates(triples, None, 0)
    assert torch.equal(both.masked, e5.masked), "a query's own text is no negative of it, however it is written"
    assert both.masked.any()


def test_evaluation_uses_the_template_and_its_fingerprint_tells(small_model):
    def made(*words):
        return untrained(plain(composed("evaluate", [f"model.path={small_model}", "precision=fp32", *words])))

    usual, echo, e5 = made("pooler=mean"), made("pooler=mean", "template=echo"), made("template=e5")
    assert len({usual.fingerprint, echo.fingerprint, e5.fingerprint}) == 3
    usual.encode(["two arrays"])
    echo.encode(["two arrays"])
    assert echo.meter.tokens > 2 * usual.meter.tokens - 2, "the cost of a second copy shows"
    sides = [e5.encode(["two arrays"], e5.tokenizer.template.asked("", side)) for side in ("query", "document")]
    assert abs(sides[0] - sides[1]).max() > 1e-3
    with pytest.raises(UserError, match="glued"):
        made("template=echo", "evaluation.glued=true")
