"""What a test says when a promise is broken."""


class Violation(Exception):
    """The store breaks a promise."""


def demand(condition, message):
    if not condition:
        raise Violation(message)
