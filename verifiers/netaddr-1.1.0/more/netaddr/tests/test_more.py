import pytest

import netaddr
from netaddr import IPNetwork
from netaddr import fbsocket
from netaddr.fbsocket import AF_INET, AF_INET6
from netaddr.strategy import ipv4, ipv6


def test_iter_hosts_of_a_network_of_four():
    hosts = [str(ip) for ip in IPNetwork('192.0.2.0/30').iter_hosts()]
    assert hosts == ['192.0.2.1', '192.0.2.2']


@pytest.mark.parametrize('value', [[], (), {}, True, False, 192])
def test_validating_what_is_no_string_with_flags(value):
    for flags in (netaddr.INET_PTON, netaddr.ZEROFILL, netaddr.INET_ATON):
        for valid in (netaddr.valid_ipv4, netaddr.valid_ipv6, ipv4.valid_str, ipv6.valid_str):
            with pytest.raises(TypeError):
                valid(value, flags)


@pytest.mark.parametrize('flags', [0, netaddr.INET_PTON, netaddr.ZEROFILL, netaddr.INET_ATON])
def test_validating_strings(flags):
    assert netaddr.valid_ipv4('192.0.2.1', flags) is True
    assert netaddr.valid_ipv4('192.0.2.256', flags) is False
    assert netaddr.valid_ipv6('2001:db8::1', flags) is True
    assert netaddr.valid_ipv6('2001:db8:::1', flags) is False
    assert netaddr.valid_ipv6('', flags) is False


@pytest.mark.parametrize(
    'family, address',
    [
        (AF_INET, ''),
        (AF_INET, '1.2.3'),
        (AF_INET, '1.2.3.4.5'),
        (AF_INET, '1.2.3.256'),
        (AF_INET, '1.2.3.04'),
        (AF_INET, '1.2.3.0x4'),
        (AF_INET, '1.2.3.four'),
        (AF_INET, '1.2.3.'),
        (AF_INET, '1.2.3.-4'),
        (AF_INET6, ''),
        (AF_INET6, '1'),
        (AF_INET6, '1:2:3:4:5:6:7'),
        (AF_INET6, '1:2:3:4:5:6:7:8:9'),
        (AF_INET6, '1::2::3'),
        (AF_INET6, '1:2:3:4::5:6:7:8'),
        (AF_INET6, '1:2:3:4:5:6:7:x'),
        (AF_INET6, '1:2:3:4:5:6:7:hello'),
        (AF_INET6, '1:2:3:4:5:6:7:12345'),
        (AF_INET6, '1:2:3:4:5:6:7:'),
        (AF_INET6, '::1.2.3'),
        (AF_INET6, '0:0:0:0:0:ffff:1.2.3'),
        (AF_INET6, '0:0:0:0:0:hello:1.2.3.4'),
        (AF_INET6, '0:0:0:0:0:0:ffff:1.2.3.4'),
    ],
)
def test_inet_pton_of_malformed_strings(family, address):
    with pytest.raises(OSError):
        fbsocket.inet_pton(family, address)
