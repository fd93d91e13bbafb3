"""Addresses that an Http step never connects to, in every form that leads there.

A workflow's author chooses the URL and the owner of the host chooses its addresses, so both may try to reach the places
where clouds give out credentials. An IPv6 address can hold an IPv4 address that a gateway, a tunnel or the kernel
translates to: each of those is checked as well. A NAT64 gateway with a prefix of its own cannot be recognised.
"""

import ipaddress
import socket
from collections.abc import Collection, Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Final

from kapelle.worker.errors import NonRetryable, PlatformFailure

IPV4: Final = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",  # this host
        "169.254.0.0/16",  # link-local, and where most clouds have their metadata
        "192.0.0.0/24",  # protocol assignments; Oracle Cloud has metadata at 192.0.0.192
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
        "100.100.100.200/32",  # metadata of Alibaba Cloud
        "168.63.129.16/32",  # the platform's own address in Azure
    )
)
IPV6: Final = tuple(
    IPv6Network(text)
    for text in (
        "::/128",  # unspecified: this host
        "fe80::/10",  # link-local
        "fec0::/10",  # site-local, out of use
        "ff00::/8",  # multicast
        "fd00:ec2::/32",  # services of Amazon EC2: metadata ::254, credentials of pods ::23
        "fd20:ce::/64",  # metadata of Google Cloud
        "fd00:c1::/32",  # metadata of Oracle Cloud
        "fd00:42::/32",  # metadata of Scaleway
    )
)

# Where an IPv4 address stands in an IPv6 address of these networks: how many bits are to the right of it.
HOLDERS: Final = (
    (IPv6Network("::/96"), 0),  # IPv4-compatible, out of use
    (IPv6Network("::ffff:0:0/96"), 0),  # IPv4-mapped
    (IPv6Network("::ffff:0:0:0/96"), 0),  # IPv4-translated (SIIT)
    (IPv6Network("64:ff9b::/96"), 0),  # NAT64
    (IPv6Network("2002::/16"), 80),  # 6to4
    (IPv6Network("2001::/32"), 64),  # Teredo, its server
)
LOCAL_NAT64: Final = IPv6Network("64:ff9b:1::/48")
TEREDO: Final = IPv6Network("2001::/32")
ISATAP: Final = frozenset({0x0000_5EFE, 0x0200_5EFE})  # the first half of an interface identifier
LOW: Final = 0xFFFF_FFFF


def addresses_of(host: str, port: int) -> list[str]:
    """The addresses of a host, whatever way its name or number is written."""
    return [str(info[4][0]) for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


def checked_address(host: str, addresses: Collection[str]) -> str:
    """An address to connect to. One that is forbidden forbids the host: its owner could send us there next time."""
    for text in addresses:
        if is_forbidden(text):
            raise NonRetryable(f"Expected an address that this worker may reach, but {host!r} is at {text}")
    if not addresses:
        raise PlatformFailure(f"Expected {host!r} to have an address, but it has none")
    return next(iter(addresses))


def is_forbidden(text: str) -> bool:
    """Whether an address, or one that it stands for, is never connected to. So is any text that is no address."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return True
    if isinstance(address, IPv4Address):
        return _is_forbidden_v4(address)
    return any(address in network for network in IPV6) or any(_is_forbidden_v4(held) for held in held_by(address))


def _is_forbidden_v4(address: IPv4Address) -> bool:
    return any(address in network for network in IPV4)


def held_by(address: IPv6Address) -> Iterator[IPv4Address]:
    """The IPv4 addresses that an IPv6 address may stand for."""
    number = int(address)
    if number == 1:  # ::1 is this machine and no IPv4-compatible address
        return
    for network, shift in HOLDERS:
        if address in network:
            yield IPv4Address(number >> shift & LOW)
    if address in TEREDO:
        yield IPv4Address(~number & LOW)  # the client's address is written inverted
    if address in LOCAL_NAT64:
        yield from _held_by_prefixes(number)
    if number >> 32 & LOW in ISATAP:
        yield IPv4Address(number & LOW)


def _held_by_prefixes(number: int) -> Iterator[IPv4Address]:
    """What each length of prefix that RFC 6052 knows gives. Bits 64 to 71 belong to none, and what follows is zero."""
    if number & LOW:
        yield IPv4Address(number & LOW)
    without = number >> 64 << 56 | number & (1 << 56) - 1
    for length in (48, 56, 64):
        shift = 120 - length - 32
        if not without & (1 << shift) - 1:
            yield IPv4Address(without >> shift & LOW)
