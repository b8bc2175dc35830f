"""What requests hold, as the OpenAPI document shows it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["Question"]

_TEXT, _NAME, _MANY = 100_000, 200, 1_000
Number = Annotated[str, Field(max_length=64)] | int | float
Scalar = Annotated[str, Field(max_length=_TEXT)] | int | float | bool | None
Name = Annotated[str, Field(max_length=_NAME)]


class Question(BaseModel):
    """A question in SQL, what is paid for it or how close it is to be, and how units are bounded."""

    model_config = ConfigDict(extra="forbid", strict=True)

    sql: Annotated[str, Field(max_length=_TEXT, description="One SELECT.")]
    parameters: (
        Annotated[list[Scalar], Field(max_length=_MANY)]
        | Annotated[dict[Name, Scalar], Field(max_length=_MANY)]
        | None
    ) = Field(None, description="Values for `?` and `$1` in order, or by name.")
    epsilon: Number | None = Field(None, description="What to pay; text keeps decimals exact.")
    delta: Number | None = Field(None, description="How much delta it may use.")
    error: Number | Annotated[dict[Name, Number], Field(max_length=_MANY)] | None = Field(
        None, description="Half-widths that are wanted instead of a price, by column or one for all."
    )
    confidence: Number = Field("0.95", description="At which error bars hold.")
    bounds: Literal["auto"] | None = None
    bounding: Literal["reweight", "choose"] | None = None
    touched: bool = False
    profile: bool | None = None

    def terms(self) -> dict[str, Any]:
        """What `quote` and `release` take."""
        return self.model_dump(exclude={"sql", "parameters"})
