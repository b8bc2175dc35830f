"""Apache Spark: aggregation where the data lives; only exact aggregates travel to this process."""

from __future__ import annotations

from sfumato.engines.spark.dialect import SPARK
from sfumato.engines.spark.engine import Spark

__all__ = ["SPARK", "Spark"]
