"""A question as a form holds it, and its quote in words. Nothing here spends."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from pydantic import ValidationError

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter, QueryRefused, SfumatoError
from sfumato.ledger.budget import amount
from sfumato.plan.prices.quoting import Quote
from sfumato.render import shown
from sfumato.server.http.bodies import Question
from sfumato.server.page.ask.past import last_of
from sfumato.server.page.ask.repairs import Repair, repairs_of
from sfumato.server.page.rest import Rest, counted, how_many, price_of_quote, price_of_receipt
from sfumato.server.troubles import is_told
from sfumato.session import Session
from sfumato.session.standing import OF_OTHERS, ON_RECORD

__all__ = ["CONFIDENCES", "Asked", "Choice", "Quoted", "Refused", "quoted"]

CONFIDENCES = ("0.9", "0.95", "0.99")
_LONGEST, _DIGITS = 20_000, 64
_SHARES = (Fraction(1, 50), Fraction(1, 10), Fraction(1, 4))
_HALVINGS = 12
_LEAST = Fraction(1, 1000)


@dataclass(frozen=True, slots=True)
class Asked:
    """What the form holds, as it was typed.

    Attributes:
        sql: The question.
        epsilon: What to pay; empty: nothing was said.
        error: Or how close the answer is to be; empty: nothing was said.
        confidence: How often error bars hold.
    """

    sql: str = ""
    epsilon: str = ""
    error: str = ""
    confidence: str = "0.95"

    @classmethod
    def of(cls, fields: Mapping[str, str]) -> Asked:
        """What a form sent. A repair or a price that was chosen with a button goes before what was typed.

        Nothing is cut: what is too long is refused by `question`, since the rest would be another question.
        """
        sql = fields.get("repair") or fields.get("sql", "")
        confidence = fields.get("confidence", "0.95")
        epsilon, error = fields.get("epsilon", "").strip(), fields.get("error", "").strip()
        if fields.get("price"):
            epsilon, error = fields["price"].strip(), ""
        return cls(
            sql.replace("\r\n", "\n"),
            epsilon,
            error,
            confidence if confidence in CONFIDENCES else "0.95",
        )

    @property
    def digest(self) -> str:
        """The same in a few letters."""
        return digest(self.sql, self.epsilon, self.error, self.confidence)

    def question(self) -> Question:
        """The same as the API takes it.

        Raises:
            InvalidParameter: if something is too long, or there are two prices.
        """
        if len(self.sql) > _LONGEST:
            raise InvalidParameter(
                f"A question has at most {_LONGEST:,} characters here, and this one has {len(self.sql):,}: "
                "leave something out, or ask it over the API, which takes more."
            )
        if max(len(self.epsilon), len(self.error)) > _DIGITS:
            raise InvalidParameter(f"A price, or an error, has at most {_DIGITS} characters.")
        if self.epsilon and self.error:
            raise InvalidParameter("Give a price or an error that you want, not both: empty one of the two.")
        try:
            return Question.model_validate(
                {
                    "sql": self.sql,
                    "epsilon": self.epsilon or None,
                    "error": self.error or None,
                    "confidence": self.confidence,
                }
            )
        except ValidationError:
            raise InvalidParameter("The question cannot be read.") from None


@dataclass(frozen=True, slots=True)
class Choice:
    """A price that can be chosen with one click, and what one gets for it.

    Attributes:
        epsilon: The price.
        told: The error of the first noisy column, in words.
        share: Of what is left, in words.
    """

    epsilon: str
    told: str
    share: str


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a question has no quote, and what helps.

    Attributes:
        reason: In a sentence.
        fix: What would work.
        repairs: The same question mended, to be chosen with one click.
        status: Of the response.
        prices: Those that would do, to be chosen with one click.
    """

    reason: str
    fix: str
    repairs: tuple[Repair, ...] = ()
    status: int = 422
    prices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Quoted:
    """A quote as it is shown.

    Attributes:
        quote: With its figures; None where no price was named yet.
        rest: Of the budget that pays.
        choices: Prices to choose from: where none was named, or this one is too much.
        asked: What was quoted.
        dataset: Whose budget pays.
    """

    quote: Quote | None
    rest: Rest
    choices: tuple[Choice, ...]
    asked: Asked
    dataset: str

    @property
    def total(self) -> Fraction:
        """All that would be paid."""
        return Fraction(0) if self.quote is None else self.quote.epsilon + self.quote.first

    @property
    def price(self) -> str:
        """In words: `epsilon 0.5, delta 1e-09`."""
        assert self.quote is not None
        delta = f", delta {amount(self.quote.delta)}" if self.quote.delta else ""
        return f"epsilon {amount(self.total)}{delta}"

    @property
    def parts(self) -> str:
        """What of it is bought first, and kept; empty where nothing is."""
        quote = self.quote
        if quote is None or not quote.first:
            return ""
        return f"{shown(quote.first)} for {quote.first_for}, once, and {shown(quote.epsilon)} for the answer"

    @property
    def record(self) -> str:
        """What the ledger has on record of it; empty where it would be paid as usual."""
        return "" if self.quote is None else dict(self.quote.standing).get("record", "")

    @property
    def free(self) -> bool:
        """Whether the very answer is on record."""
        return self.record == ON_RECORD

    @property
    def is_others(self) -> bool:
        """Whether the answer is somebody else's: then what they paid counts, and not the price asked for."""
        return self.record.startswith(OF_OTHERS)

    @property
    def too_much(self) -> bool:
        """Whether it would be refused for its price."""
        return self.quote is not None and "left" in dict(self.quote.standing)

    @property
    def share(self) -> str:
        """Of what is left."""
        return share_of(self.total, self.rest)

    @property
    def columns(self) -> list[dict[str, str]]:
        """Each noisy column with its error and what it estimates, in words."""
        assert self.quote is not None
        noisy = [column for column in self.quote.columns if not column.public]
        return [{"name": one.name, "told": one.told, "estimand": one.estimand} for one in noisy]

    @property
    def after(self) -> str:
        """For how many questions like this one what is left is enough."""
        quote = self.quote
        if quote is None or self.free or self.is_others or self.too_much:
            return ""
        balance = self.rest.balance
        count = how_many(balance, self.rest.price)
        return "" if count is None else f"With what is left you could ask {counted(count)} like this."

    @property
    def seen(self) -> str:
        """What a release sends back, so that nobody pays for another question or price than they saw."""
        delta = "" if self.quote is None else str(self.quote.delta)
        return digest(self.asked.digest, str(self.total), delta, self.record)


def digest(*parts: str) -> str:
    """Texts in a few letters, others for others."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def share_of(price: Fraction, rest: Rest) -> str:
    """What part of what is left a price is, in words."""
    left = Fraction(rest.balance.remaining)
    if not left or price > left:
        return "more than what is left"
    share = float(price / left) * 100
    return "less than 1 % of what is left" if share < 1 else f"{share:.0f} % of what is left"


def quoted(session: Session, asked: Asked) -> Quoted | Refused:
    """The quote of a question in an analyst's name, or why there is none, with what helps.

    Privacy:
        No row is read and nothing is spent: it is what `Query.quote` gives, with prices to choose from.

    Raises:
        SfumatoError: if its sentence is for stewards alone.
    """
    if not asked.sql.strip():
        return Refused("Write a question, or take one of the examples.", "", (), 200)
    try:
        return _quoted(session, asked)
    except QueryRefused as error:
        return Refused(
            error.reason, error.fix, _mended(session, asked, error), prices=_priced(session, asked)
        )
    except SfumatoError as error:
        if not is_told(error, steward=False):
            raise
        return Refused(str(error), "", prices=_priced(session, asked))


def _quoted(session: Session, asked: Asked) -> Quoted:
    question = asked.question()
    query = session.sql(question.sql)
    dataset = session.dataset_of(query.report)
    balance = session.balance(dataset.name, window=query.windows)
    if not (asked.epsilon or asked.error or query.priced):
        last = last_of(session, dataset.name)
        rest = Rest(balance, {} if last is None else price_of_receipt(last))
        return Quoted(None, rest, _choices(session, asked, rest), asked, dataset.name)
    quote = query.quote(**question.terms())
    price = price_of_quote(dataset.budget, quote)
    rest = Rest(balance, price, float((quote.epsilon + quote.first) / balance.epsilon))
    made = Quoted(quote, rest, (), asked, dataset.name)
    if made.too_much:
        return replace(made, choices=_largest(session, asked, rest))
    return made


def _choices(session: Session, asked: Asked, rest: Rest) -> tuple[Choice, ...]:
    """A small, a middling and a large part of what is left, with the errors that they buy."""
    left = Fraction(rest.balance.remaining)
    prices = dict.fromkeys(_round_down(left * share, 1) for share in _SHARES)
    found = (_choice(session, asked, price, rest) for price in prices if price)
    return tuple(choice for choice in found if choice is not None)


def _largest(session: Session, asked: Asked, rest: Rest) -> tuple[Choice, ...]:
    """The largest price that fits."""
    price = _round_down(Fraction(rest.balance.remaining))
    for _ in range(_HALVINGS):
        if price < _LEAST:
            return ()
        choice = _choice(session, asked, price, rest)
        if choice is not None:
            return (choice,)
        price = _round_down(price * Fraction(4, 5))
    return ()


def _choice(session: Session, asked: Asked, price: Fraction, rest: Rest) -> Choice | None:
    """A price and what one gets for it; None where it does not fit."""
    question = replace(asked, epsilon=str(float(price)), error="").question()
    quote = session.sql(question.sql).quote(**question.terms())
    if "left" in dict(quote.standing):
        return None
    column = next((column for column in quote.columns if not column.public), None)
    told = "" if column is None else f"{column.name}: {column.told}"
    return Choice(shown(price), told, share_of(quote.epsilon + quote.first, rest))


def _round_down(value: Fraction, digits: int = 2) -> Fraction:
    """The same with so many digits, never more."""
    if value <= 0:
        return Fraction(0)
    scale = Fraction(1)
    while value * scale < 10 ** (digits - 1):
        scale *= 10
    while value * scale >= 10**digits:
        scale /= 10
    return Fraction(int(value * scale)) / scale


def _priced(session: Session, asked: Asked) -> tuple[str, ...]:
    """Prices that would do where the one that was typed, or the error, is what is wrong."""
    point = asked.epsilon.replace(",", ".")
    try:
        if point != asked.epsilon or (point and asked.error):
            _quoted(session, replace(asked, epsilon=point, error=""))
            return (point,)
        if not asked.error and not asked.epsilon:
            return ()
        return tuple(
            choice.epsilon for choice in _quoted(session, replace(asked, epsilon="", error="")).choices
        )
    except SfumatoError:
        return ()


def _mended(session: Session, asked: Asked, error: QueryRefused) -> tuple[Repair, ...]:
    """The repairs that would be answered, or are refused for another reason."""

    def helps(text: str) -> bool:
        other = replace(asked, sql=text)
        try:
            question = other.question()
            query = session.sql(text)
            if asked.epsilon or asked.error or query.priced:
                query.quote(**question.terms())
        except QueryRefused as still:
            return still.reason != error.reason and still.subject != "text"
        except SfumatoError:
            return False
        return True

    return repairs_of(error, asked.sql, helps)
