import pytest

import netaddr
from netaddr import IPNetwork
from netaddr import fbsocket
from netaddr.fbsocket import AF_INET, AF_INET6
from netaddr.strategy import ipv4, ipv6


def told(call, *args):
    """What it returns, or which of the two errors it raises."""
    try:
        return call(*args)
    except OSError:
        return 'OSError'
    except TypeError:
        return 'TypeError'


def test_iter_hosts_of_a_network_of_four():
    hosts = [str(ip) for ip in IPNetwork('192.0.2.0/30').iter_hosts()]
    assert hosts == ['192.0.2.1', '192.0.2.2']


def test_validating_anything_as_ipv4():
    for flags in (0, netaddr.INET_PTON, netaddr.ZEROFILL, netaddr.INET_ATON):
        for valid in (netaddr.valid_ipv4, ipv4.valid_str):
            assert [
                told(valid, value, flags)
                for value in ('192.0.2.1', [], (), '10.0.0.256', {}, True, '0.0.0.0', False, 192)
            ] == [True, 'TypeError', 'TypeError', False, 'TypeError', 'TypeError', True, 'TypeError', 'TypeError']


def test_validating_anything_as_ipv6():
    for flags in (0, netaddr.INET_PTON, netaddr.ZEROFILL, netaddr.INET_ATON):
        for valid in (netaddr.valid_ipv6, ipv6.valid_str):
            assert [
                told(valid, value, flags)
                for value in ([], '2001:db8::1', 192, '2001:db8:::1', (), {}, '', '::', True, False)
            ] == ['TypeError', True, 'TypeError', False, 'TypeError', 'TypeError', False, True, 'TypeError', 'TypeError']


@pytest.mark.parametrize('flags', [0, netaddr.INET_PTON, netaddr.ZEROFILL, netaddr.INET_ATON])
def test_validating_strings(flags):
    assert netaddr.valid_ipv4('192.0.2.1', flags) is True
    assert netaddr.valid_ipv4('192.0.2.256', flags) is False
    assert netaddr.valid_ipv6('2001:db8::1', flags) is True
    assert netaddr.valid_ipv6('2001:db8:::1', flags) is False
    assert netaddr.valid_ipv6('', flags) is False


def test_inet_pton_of_strings_and_others_as_ipv4():
    assert [
        told(fbsocket.inet_pton, AF_INET, address)
        for address in (
            '',
            '1.2.3',
            '192.0.2.1',
            '1.2.3.4.5',
            '1.2.3.256',
            '1.2.3.04',
            '1.2.3.255',
            4,
            '1.2.3.0x4',
            '1.2.3.four',
            '1.2.3.',
            '10.20.30.40',
            '1.2.3.-4',
            None,
        )
    ] == [
        'OSError',
        'OSError',
        b'\xc0\x00\x02\x01',
        'OSError',
        'OSError',
        'OSError',
        b'\x01\x02\x03\xff',
        'TypeError',
        'OSError',
        'OSError',
        'OSError',
        b'\n\x14\x1e(',
        'OSError',
        'TypeError',
    ]


def test_inet_pton_of_strings_and_others_as_ipv6():
    assert [
        told(fbsocket.inet_pton, AF_INET6, address)
        for address in (
            '',
            '1',
            '1:2:3:4:5:6:7:8',
            '1:2:3:4:5:6:7',
            '1:2:3:4:5:6:7:8:9',
            '1::2::3',
            6,
            '1:2:3:4::5:6:7:8',
            '1:2:3:4:5:6:7:x',
            '2001:db8::1',
            '1:2:3:4:5:6:7:hello',
            '1:2:3:4:5:6:7:12345',
            '1:2:3:4:5:6:7:',
            '0:0:0:0:0:ffff:1.2.3.4',
            '::1.2.3',
            '0:0:0:0:0:ffff:1.2.3',
            [],
            '0:0:0:0:0:hello:1.2.3.4',
            '0:0:0:0:0:0:ffff:1.2.3.4',
        )
    ] == [
        'OSError',
        'OSError',
        b'\x00\x01\x00\x02\x00\x03\x00\x04\x00\x05\x00\x06\x00\x07\x00\x08',
        'OSError',
        'OSError',
        'OSError',
        'TypeError',
        'OSError',
        'OSError',
        b' \x01\r\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01',
        'OSError',
        'OSError',
        'OSError',
        b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\x01\x02\x03\x04',
        'OSError',
        'OSError',
        'TypeError',
        'OSError',
        'OSError',
    ]
