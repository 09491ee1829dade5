"""Where a host takes its engines from: made in this process, or served elsewhere and seen from here."""

from collections.abc import Callable
from typing import Any, Protocol, cast

from accel.engine import Engine, EngineConfig
from accel.engine.profile import Profile
from accel_local.profiles import recall
from accel_local.replicas import replicated

Engines = tuple[EngineConfig[Any], int]


class EngineSource(Protocol):
    """Gives a host started engines. One source may serve several hosts, one after the other."""

    async def start(self, config: EngineConfig[Any]) -> Engine:
        """The started engine of `config`, on the host's loop. Raises an AccelError and leaves nothing running."""

    def known_profile(self, config: EngineConfig[Any]) -> Profile | None:
        """What is known about the speed of an engine that is not started."""

    def close(self) -> None:
        """After the engines of a host are closed: let go of what they had in common. Blocks; the next start begins
        anew."""


class InProcess:
    """Engines of this process."""

    def __init__(self, deployed: Callable[[EngineConfig[Any]], Engines] = lambda config: (config, 1)) -> None:
        """deployed: the config that serves what a program asks for, and how many engines of it share the work."""
        self._deployed = deployed

    async def start(self, config: EngineConfig[Any]) -> Engine:
        config, replicas = self._deployed(config)
        members: list[Engine] = []
        try:
            for _ in range(replicas):
                member = cast(Engine, config.create())
                await member.start()
                members.append(member)
        except BaseException:
            for member in members:
                await member.close()
            raise
        return members[0] if replicas == 1 else replicated(members, config.label)

    def known_profile(self, config: EngineConfig[Any]) -> Profile | None:
        return recall(config.label)

    def close(self) -> None:
        pass
