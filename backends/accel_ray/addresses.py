"""Addresses of a Ray as users write them."""

from accel.errors import ConfigurationError


def host_and_port(address: str) -> tuple[str, int]:
    """Of an address that isn't "auto". Raises ConfigurationError."""
    if address.startswith("ray://"):
        raise ConfigurationError(
            f"{address} is an address of Ray's client server, which token streams can't pass.",
            "Run the program on a machine of the cluster, with address 'auto' or host:port (6379, usually).",
        )
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65_535:
        raise ConfigurationError(f"{address!r} is no address of a Ray.", "Write 'auto' or host:port.")
    return host.strip("[]"), int(port)
