"""The terminal an agent works in: one persistent bash on a PTY in the box, driven by pexpect."""

from sandbox.runtime.terminal.tape import Tape as Tape
from sandbox.runtime.terminal.terminal import ENVIRONMENT as ENVIRONMENT
from sandbox.runtime.terminal.terminal import Terminal as Terminal
