"""Base classes of the values of a scenario."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, model_serializer

from evaluators.model import Json


class Value(BaseModel):
    """An immutable value that rejects unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Kind(Value):
    """One of several kinds, named by `type` in the file."""

    type: str

    @model_serializer(mode="wrap")
    def _with_type(self, dump: SerializerFunctionWrapHandler) -> dict[str, Json]:
        """Keep `type` even when defaults are left out, because it selects the class."""
        return {"type": self.type, **dump(self)}
