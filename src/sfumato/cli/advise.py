"""`sfumato advise`: which mechanism somebody needs, from plain answers; asked for in a terminal."""

from __future__ import annotations

import functools
import shlex
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from sfumato.cli.failures import reported
from sfumato.cli.options import JsonOption
from sfumato.cli.output import emit_json, is_terminal, paragraph, say
from sfumato.errors import InvalidParameter

if TYPE_CHECKING:
    from sfumato.advice import Advice

__all__ = ["advise"]

Answer = TypeVar("Answer")


def _detail(name: str, told: str, metavar: str = "NUMBER") -> Any:
    return typer.Option(f"--{name}", metavar=metavar, help=told)


@reported
def advise(
    publish: Annotated[
        str | None,
        typer.Argument(
            metavar="WHAT",
            help="count, sum, mean, median, most-common, histogram, groups, stream, model, synthetic, "
            "devices or questions.",
        ),
    ] = None,
    epsilon: Annotated[str | None, _detail("epsilon", "The budget there is for it.")] = None,
    delta: Annotated[str | None, _detail("delta", "The other half of the budget; 0: pure.")] = None,
    people: Annotated[str | None, _detail("people", "About how many people are in the data.")] = None,
    holder: Annotated[str | None, _detail("holder", "Who has the data: you or people.", "WHO")] = None,
    rows: Annotated[str | None, _detail("rows", "The most rows of one person; of a stream, days.")] = None,
    lower: Annotated[str | None, _detail("lower", "The least that a value can be.")] = None,
    upper: Annotated[str | None, _detail("upper", "The greatest that a value can be.")] = None,
    groups: Annotated[str | None, _detail("groups", "About how many groups or values there are.")] = None,
    known: Annotated[
        str | None, _detail("known", "Whether everybody knows which groups there are.", "YES|NO")
    ] = None,
    steps: Annotated[str | None, _detail("steps", "How many days are published.")] = None,
    columns: Annotated[str | None, _detail("columns", "How many columns there are.")] = None,
    questions: Annotated[str | None, _detail("questions", "How many questions will be asked.")] = None,
    confidence: Annotated[str, _detail("confidence", "How often the error must hold.")] = "0.95",
    json_: JsonOption = False,
) -> None:
    """Which mechanism you need: what to run, its price, its error, the next best."""
    from sfumato.advice import advise as advised
    from sfumato.advice.said import WANTS, read

    said = {"people": people, "rows": rows, "lower": lower, "upper": upper, "groups": groups}
    said |= {"known": known, "steps": steps, "columns": columns, "questions": questions}
    details = {name: read(name, text) for name, text in said.items() if text is not None}
    price = {"epsilon": epsilon, "delta": delta}
    want = _want(publish, WANTS) if publish is not None else None
    asked = _can_ask(json_) and (want is None or epsilon is None)
    if asked:
        want, holder = _interview(want, holder, details, price)
    if want is None:
        raise InvalidParameter("Say what you want to publish: sfumato advise count --epsilon 1 --people 1000")
    if price["epsilon"] is None:
        raise InvalidParameter("Say how much budget there is: give --epsilon 1.")
    advice = advised(
        want,
        epsilon=price["epsilon"],
        delta=price["delta"] or "0",
        holder=holder,
        confidence=confidence,
        **details,
    )
    if json_:
        emit_json(advice.to_dict())
        return
    say(str(advice))
    if asked:
        say()
        say("The same in a script:", style="dim")
        paragraph(_command(advice, details, price), indent="  ")


def _interview(
    want: str | None, holder: str | None, details: dict[str, Any], price: dict[str, str | None]
) -> tuple[str, str]:
    """Ask for what was not said, one thing after the other; what cannot be is asked again."""
    from sfumato.advice.said import DETAILS, PRESUMED, WANTS, details_of, needs_delta, read
    from sfumato.numeric.exact import delta_of, positive

    if want is None:
        say("What do you want to publish?", style="bold")
        names = list(WANTS)
        half = len(names) // 2
        for left, right in zip(range(half), range(half, len(names)), strict=True):
            say(f"  {left + 1:2}  {WANTS[names[left]]:26}{right + 1:2}  {WANTS[names[right]]}")
        want = _ask("A number", None, lambda text: _want(text, WANTS))
    if want == "devices":
        holder = holder or "people"
    if holder is None:

        def who(text: str) -> str:
            details_of(want, text.strip())
            return text.strip()

        holder = _ask("Who holds the data: you, or people, each their own?", "you", who)
    for name in details_of(want, holder):
        if name not in details:
            presumed = DETAILS[name].example if name in PRESUMED else None
            details[name] = _ask(DETAILS[name].question, presumed, functools.partial(read, name))
    if price["epsilon"] is None:

        def sound(text: str) -> str:
            positive(text, "epsilon")
            return text

        price["epsilon"] = _ask("Which epsilon is there for it? Smaller protects more.", None, sound)
    if price["delta"] is None:

        def slack(text: str) -> str:
            delta_of(text)
            return text

        usual = "1e-6" if needs_delta(want, holder, known=details.get("known", True)) else "0"
        price["delta"] = _ask("And which delta? 0 is the strictest.", usual, slack)
    say()
    return want, holder


def _ask(question: str, presumed: str | None, understood: Callable[[str], Answer]) -> Answer:
    """An answer that can be used."""
    while True:
        text = typer.prompt(question, default=presumed, prompt_suffix=" ")
        try:
            return understood(text)
        except InvalidParameter as error:
            paragraph(error.shell or str(error))


def _want(text: str, wants: dict[str, str]) -> str:
    """What is published, from its name, its number in the list, or its words."""
    from sfumato.advice.said import check_want

    word = text.strip().lower().replace("-", " ")
    names = list(wants)
    if word.isdigit() and 1 <= int(word) <= len(names):
        return names[int(word) - 1]
    word = {words: name for name, words in wants.items()}.get(word, word)
    check_want(word)
    return word


def _command(advice: Advice, details: dict[str, Any], price: dict[str, str | None]) -> str:
    """The same question on one line."""
    from sfumato.advice.said import spelled

    given: dict[str, Any] = {"holder": advice.said.holder, **details, **price}
    words = ["sfumato", "advise", spelled(advice.said.want)]
    for name, value in given.items():
        told = {True: "yes", False: "no"}.get(value, value) if isinstance(value, bool) else value
        words += [f"--{name}", shlex.quote(str(told))]
    return " ".join(words)


def _can_ask(quiet: bool) -> bool:
    return not quiet and is_terminal() and sys.stdin.isatty()
