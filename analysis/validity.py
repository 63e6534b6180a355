"""What was measured of the tests."""


def skew_note(skewness, n):
    return []
