"""Ctrl-C: acknowledged at once, takes effect between two periods."""

import math
import os
import signal
import socket
from collections.abc import Callable
from threading import Event, Thread

SIGNALS = (signal.SIGINT, signal.SIGTERM)
SHOW_CURSOR = b"\x1b[?25h"


class Interrupt:
    """The first SIGINT or SIGTERM ends the run after the current period, the second one at once.

    Python runs signal handlers only between bytecode instructions, so not while a program is
    compiled or runs. Meanwhile a thread that the wake-up file descriptor notifies responds.

    Args:
        tell: called by that thread at the first signal.
        grace: seconds after the second signal in which the run may end by itself; then the process
            is ended as if it had been killed.
    """

    def __init__(self, tell: Callable[[], None] = lambda: None, grace: float = math.inf) -> None:
        self.asked, self.tell, self.grace = False, tell, grace
        self.over = Event()

    def __enter__(self) -> "Interrupt":
        self.ear, self.mouth = socket.socketpair()
        self.mouth.setblocking(False)
        self.old = {number: signal.signal(number, self._note) for number in SIGNALS}
        self.heard_before = signal.set_wakeup_fd(self.mouth.fileno(), warn_on_full_buffer=False)
        self.thread = Thread(target=self._listen, daemon=True)
        self.thread.start()
        return self

    def _note(self, *_: object) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True

    def _listen(self) -> None:
        heard = 0
        while numbers := self.ear.recv(16):
            for _ in filter(SIGNALS.__contains__, numbers):
                heard += 1
                if heard == 1:
                    self.tell()
                elif self.grace < math.inf and not self.over.wait(self.grace):
                    if os.isatty(2):
                        os.write(2, SHOW_CURSOR)
                    os.write(2, b"tsallax: stopped\n")
                    os._exit(130)

    def __exit__(self, *_: object) -> None:
        self.over.set()
        signal.set_wakeup_fd(self.heard_before)
        for number, handler in self.old.items():
            signal.signal(number, handler)
        self.mouth.close()  # this ends the thread
        self.thread.join()
        self.ear.close()
