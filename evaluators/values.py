"""What the values of a scenario have in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, model_serializer

from evaluators.model import Json


class Value(BaseModel):
    """Immutable, and a name that does not exist is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Kind(Value):
    """One kind of several; a file says which by `type`."""

    type: str

    @model_serializer(mode="wrap")
    def _with_type(self, dump: SerializerFunctionWrapHandler) -> dict[str, Json]:
        """Keep the type also where defaults are left out, as nothing else tells the kinds apart."""
        return {"type": self.type, **dump(self)}
