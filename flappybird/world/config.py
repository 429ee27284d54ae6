"""Every number of the world, checked once.

`FlappyConfig` holds the card's physics fields under the card's names and with the card's defaults. A config that
exists can be played: bad values, unknown names and worlds that no bird can cross are refused when it is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from flappybird.errors import ConfigError, show, unknown_name
from flappybird.world.units import UNITS, exact_multiple, to_units

MAX_VISIBLE_PIPES = 200
"""More pipes on screen than this are refused: an observation would be pages long."""

Length = Annotated[float, Field(gt=0, le=1_000)]
Ticks = Annotated[int, Field(ge=1, le=10_000)]
Count = Annotated[int, Field(ge=0, le=1_000_000)]


class Strict(BaseModel):
    """Fields that are what they should be, or are refused in one line; frozen, hashable. None stands for the default.

    Raises:
        ConfigError: a field is unknown, of the wrong type or out of range.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    FIELD: ClassVar[str]
    """What a field is called in messages."""

    def __init__(self, **fields: Any) -> None:
        for name in fields:
            if name not in type(self).model_fields:
                raise ConfigError(unknown_name(name, type(self).model_fields, self.FIELD))
        try:
            # A table of rows gives all of them the same fields, null where a row has none.
            super().__init__(**{name: value for name, value in fields.items() if value is not None})
        except ValidationError as error:
            raise ConfigError(one_line(error)) from None


class FlappyConfig(Strict):
    """The physics of one world: frozen, hashable, validated.

    Lengths are world units, speeds world units per tick, up is positive. Every value is a multiple of 0.0001; gap
    heights and the gap offset are multiples of 0.01. Defaults are the environment card's; `pipe_width`, which the card
    leaves open, is 2.0.

    Raises:
        ConfigError: a field is unknown, of the wrong type, out of range or too fine, or the world cannot be crossed.
    """

    FIELD: ClassVar[str] = "a field of FlappyConfig"

    world_w: Length = 24.0
    """World width; pipes appear with their centre at x = `world_w`."""
    world_h: Length = 20.0
    """World height; y runs from -`world_h`/2 to +`world_h`/2, both fatal."""
    bird_x: Length = 4.0
    """The bird's fixed x."""
    bird_radius: Length = 0.20
    """Collision radius."""
    gravity: Annotated[float, Field(lt=0, ge=-1_000)] = -0.30
    """Added to the vertical velocity in every tick without TAP."""
    jump_impulse: Length = 1.6
    """What TAP sets the vertical velocity to."""
    pipe_speed: Length = 0.30
    """How far pipes move left per tick."""
    pipe_spawn_interval: Ticks = 30
    """Ticks between the appearance of two pipes."""
    first_spawn_interval: Ticks = 10
    """The tick in which the first pipe appears."""
    base_gap_height: Length = 8.0
    """Gap height of the pipes after the ramp."""
    easy_gap_height: Length = 6.0
    """Gap height of the first `easy_mode_pipes` pipes."""
    easy_mode_pipes: Count = 6
    """Pipes before the gap height begins to change."""
    ramp_pipes: Count = 12
    """Pipes over which the gap height goes from easy to base."""
    gap_center_offset: Annotated[float, Field(ge=0, le=1_000)] = 2.0
    """Gap centres lie within ± this."""
    pipe_width: Length = 2.0
    """Width of a pipe; its x is its centre."""

    HUNDREDTHS: ClassVar[tuple[str, ...]] = ("base_gap_height", "easy_gap_height", "gap_center_offset")

    def __init__(self, **fields: Any) -> None:
        super().__init__(**fields)
        self._refuse_too_fine()
        self._refuse_unplayable()

    @classmethod
    def of(cls, config: FlappyConfig | Mapping[str, Any] | None, overrides: Mapping[str, Any] | None = None) -> FlappyConfig:
        """Return `config` (a config, its dict, or None for the defaults) with `overrides` laid over it.

        Raises:
            ConfigError: either is not a mapping of fields, or the result is not a legal config.
        """
        if isinstance(config, FlappyConfig):
            if not _mapping(overrides, "config_overrides"):
                return config
            config = dict(config)
        fields = dict(_mapping(config, "config"))
        fields.update(_mapping(overrides, "config_overrides"))
        return cls(**fields)

    def changed(self) -> dict[str, float | int]:
        """Return the fields that differ from the card's defaults."""
        return {name: value for name, value in self.model_dump().items() if value != type(self).model_fields[name].default}

    def _refuse_too_fine(self) -> None:
        for name, value in self:
            if isinstance(value, float):
                step, parts = ("0.01", 100) if name in self.HUNDREDTHS else ("0.0001", UNITS)
                try:
                    exact_multiple(value, parts)
                except ValueError:
                    raise ConfigError(f"{name} = {value!r}: must be a multiple of {step}") from None

    def _refuse_unplayable(self) -> None:
        # In units, so that the limits are exact.
        length = {name: to_units(value) for name, value in self if isinstance(value, float)}
        radius, width, half_height = length["bird_radius"], length["pipe_width"], length["world_h"] / 2

        if radius >= half_height:
            raise ConfigError(f"bird_radius = {self.bird_radius}: must be below world_h/2 = {self.world_h / 2}")
        if length["bird_x"] < radius:
            raise ConfigError(
                f"bird_x = {self.bird_x}: must be at least bird_radius = {self.bird_radius}, or the bird leaves the world"
            )
        if length["bird_x"] + radius + width / 2 >= length["world_w"]:
            raise ConfigError(
                f"world_w = {self.world_w}: must exceed bird_x + bird_radius + pipe_width/2 = "
                f"{(length['bird_x'] + radius + width / 2) / UNITS}, or pipes appear on top of the bird"
            )
        if length["pipe_speed"] >= width + 2 * radius:
            raise ConfigError(
                f"pipe_speed = {self.pipe_speed}: must be below pipe_width + 2*bird_radius = "
                f"{(width + 2 * radius) / UNITS}, or a pipe can jump over the bird in one tick"
            )
        for name in ("easy_gap_height", "base_gap_height"):
            if length[name] <= 2 * radius:
                raise ConfigError(
                    f"{name} = {getattr(self, name)}: must exceed 2*bird_radius = {2 * radius / UNITS}, or no bird can cross"
                )
        if length["gap_center_offset"] + radius >= half_height:
            raise ConfigError(
                f"gap_center_offset = {self.gap_center_offset}: must be below world_h/2 - bird_radius = "
                f"{(half_height - radius) / UNITS}, or gaps lie where no bird can live"
            )
        way = length["world_w"] + width / 2
        if way / length["pipe_speed"] / self.pipe_spawn_interval > MAX_VISIBLE_PIPES:
            raise ConfigError(
                f"pipe_spawn_interval = {self.pipe_spawn_interval}: more than {MAX_VISIBLE_PIPES} pipes "
                f"would be on screen at once; raise it, or pipe_speed = {self.pipe_speed}"
            )


def _mapping(value: Any, name: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ConfigError(f"{name} = {show(value)}: must be an object of FlappyConfig fields, such as {{'gravity': -0.25}}")
    for field in value:
        if not isinstance(field, str):
            raise ConfigError(f"{name}: {unknown_name(field, FlappyConfig.model_fields, FlappyConfig.FIELD)}")
    return value


def one_line(error: ValidationError) -> str:
    """Return the first fault that pydantic found, as one line: field, value, what is allowed."""
    fault = error.errors(include_url=False, include_context=False)[0]
    name = ".".join(str(part) for part in fault["loc"]) or "value"
    message = fault["msg"].removeprefix("Value error, ")
    return f"{name} = {show(fault['input'])}: {message[:1].lower()}{message[1:]}"
