# SPDX-License-Identifier: GPL-2.0-only
"""The rows of make bench and what they have to reach."""
import dataclasses

from rows import Row


@dataclasses.dataclass(frozen=True)
class Load:
    """A load with its goals: passthrough's count as part of the in-tree block path's."""
    row: Row
    proposal: int	# counted once with the patch set posted in December 2024
    must: float
    aim: float

    def stock(self):
        return self.row.change(driver='stock', path='block')

    def block(self):
        return self.row.change(path='block')

    def pt64(self):
        return self.row.change(path='pt64')


IOS = 2000
QD32 = Row(depth=32, batch=8, ios=IOS, repeat=3)
QD8 = Row(depth=8, batch=4, ios=IOS, repeat=3)
QD1 = Row(depth=1, batch=1, poll=True, submit=True, ios=IOS, repeat=3)

LOADS = [
    Load(QD32.change(fixed=True), 3940, 0.55, 0.46),
    Load(QD32, 5028, 0.55, 0.48),
    Load(QD8.change(fixed=True), 4279, 0.58, 0.50),
    Load(QD8, 5380, 0.58, 0.51),
    Load(QD1.change(fixed=True), 3890, 0.66, 0.56),
    Load(QD1, 4773, 0.64, 0.55),
]
DEEP = [load for load in LOADS if load.row.depth > 1]
BLOCK_MUST, BLOCK_AIM = 1.00, 0.90
KICK_TOLERANCE = 1.05
REPEAT_MISSED = 5

# The same goals, with this much room, in other surroundings
VARIANT_ROOM = 0.02
VARIANTS = [{'write': True}, {'packed': True}, {'defer': True}, {'sched': 'mq-deadline'}]

# Where passthrough must only not be dearer
NOT_DEARER = [
    Row(size=65536, fixed=True, ios=1000), Row(size=65536, ios=1000),
    # Of scattered pages 1 MiB would be more segments than a command may have
    Row(depth=8, batch=4, size=1 << 20, huge=True, fixed=True, ios=250),
    Row(depth=8, batch=4, size=1 << 20, huge=True, ios=250),
    Row(vec=1, ios=IOS), Row(size=16384, vec=4, ios=IOS), Row(size=65536, vec=16, ios=1000),
]

# What the parameter saves that trades large and many requests for cheap ones
DIRECT = [row.change(params='direct_descriptors=1') for row in (QD32.change(fixed=True), QD32)]

FLOOR = Row(driver='stock', path='nop', ios=IOS)
ROUND_TRIP = Row(depth=1, batch=1, fixed=True, ios=IOS)


def variant_loads():
    for what in VARIANTS:
        for load in DEEP:
            yield Load(load.row.change(repeat=1, **what), 0, load.must + VARIANT_ROOM, load.aim)


def gate_rows():
    found = [FLOOR]
    for load in LOADS:
        found += [load.stock(), load.block(), load.row, load.pt64()]
    for load in variant_loads():
        found += [load.stock(), load.block(), load.row]
    for row in NOT_DEARER:
        found += [row.change(driver='stock', path='block'), row.change(path='block'), row]
    return found


def boot_rows():
    """What is measured again in other boots, to show how well counts repeat."""
    return [row for load in LOADS for row in (load.stock(), load.row)]


# One thing grows, the rest stays: name, the values, a row for a value
SCALING = [
    ('depth', [1, 2, 4, 8, 16, 32, 64, 128],
     lambda n: Row(fixed=True, depth=n, batch=min(n, 8), ios=IOS)),
    ('batch', [1, 2, 4, 8, 16, 32], lambda n: Row(fixed=True, depth=32, batch=n, ios=IOS)),
    ('KiB', [4, 16, 64, 256, 512],
     lambda n: Row(fixed=True, depth=8, batch=4, size=n << 10, ios=max(250, IOS * 4 // n // 2))),
    ('iovecs', [1, 2, 4, 8, 16], lambda n: Row(vec=n, size=4096 * n, ios=IOS // 2)),
    ('threads', [1, 2, 4, 8], lambda n: Row(fixed=True, threads=n, ios=IOS)),
]


def scaling_rows():
    for _, values, row_of in SCALING:
        for n in values:
            row = row_of(n)
            yield from (row.change(driver='stock', path='block'), row.change(path='block'), row)


@dataclasses.dataclass
class Check:
    """One figure and its limit."""
    row: Row
    base: Row
    what: str		# instructions, kicks, kicks a batch
    value: float
    limit: float
    aim: float = 0

    def ok(self):
        # A figure within rounding of its limit has reached it
        return self.value <= self.limit + 0.0005

    def reached_aim(self):
        return bool(self.aim) and self.value <= self.aim + 0.0005


def count_check(row, base, limit, aim, figures):
    return Check(row, base, 'instructions', figures[row]['kernel'] / figures[base]['kernel'],
                 limit, aim)


def kick_check(row, base, figures):
    return Check(row, base, 'kicks', figures[row]['kicks'] / figures[base]['kicks'],
                 KICK_TOLERANCE)


def batch_check(row, base, figures):
    return Check(row, base, 'kicks a batch', figures[row]['kicks'] * row.batch, KICK_TOLERANCE)


def row_checks(row, base, limit, aim, figures):
    """What is asked of one row; nothing where it or its base gave no figures."""
    if 'kernel' not in figures.get(row, {}) or 'kernel' not in figures.get(base, {}):
        return
    yield count_check(row, base, limit, aim, figures)
    yield kick_check(row, base, figures)
    if row.depth > 1 and row.path != 'block':
        yield batch_check(row, base, figures)


def checks(figures):
    """Every must-row that gave figures."""
    for load in [*LOADS, *variant_loads()]:
        yield from row_checks(load.block(), load.stock(), BLOCK_MUST, BLOCK_AIM, figures)
        yield from row_checks(load.row, load.stock(), load.must, load.aim, figures)
        yield from row_checks(load.pt64(), load.stock(), load.must, load.aim, figures)
    for row in NOT_DEARER:
        base = row.change(driver='stock', path='block')
        yield from row_checks(row.change(path='block'), base, BLOCK_MUST, 0, figures)
        yield from row_checks(row, base, 1.0, 0, figures)
