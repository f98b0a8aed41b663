# SPDX-License-Identifier: GPL-2.0-only
"""What is measured: a row is one load on one driver."""
import concurrent.futures
import dataclasses
import os

import guest

NODE = {'block': '', 'pt': 'c0', 'pt64': 'c0'}


@dataclasses.dataclass(frozen=True)
class Row:
    driver: str = 'ours'	# stock, ours or a module file
    path: str = 'pt'		# block, pt (op 1), pt64 (op 3), nop
    depth: int = 32
    batch: int = 8
    size: int = 4096
    vec: int = 0
    threads: int = 1
    fixed: bool = False
    write: bool = False
    poll: bool = False
    defer: bool = False
    submit: bool = False	# count the submitting call only
    huge: bool = False
    packed: bool = False
    sched: str = 'none'
    params: str = ''
    ios: int = 8000
    repeat: int = 1		# the median of so many counts

    def cpus(self):
        """Polled rows have an interrupt and a poll queue, on two CPUs."""
        return max(self.threads, 2 if self.poll else 1)

    def all_params(self):
        return ' '.join(filter(None, ['poll_queues=1' if self.poll else '', self.params]))

    def client_args(self, disk):
        args = ['--path', self.path]
        if self.path != 'nop':
            args += ['--file', f'/dev/{disk}{NODE[self.path]}']
        for name in ('depth', 'batch', 'size', 'threads', 'ios'):
            args += [f'--{name}', str(getattr(self, name))]
        args += ['--warmup', str(max(self.ios // 8, self.depth))]
        if self.vec:
            args += ['--vec', str(self.vec)]
        for name in ('fixed', 'write', 'poll', 'defer', 'huge'):
            if getattr(self, name):
                args.append(f'--{name}')
        return args + (['--submit-only'] if self.submit else [])

    def change(self, **what):
        return dataclasses.replace(self, **what)

    def load(self):
        """The load in words, without driver and path."""
        size = f'{self.size >> 10} KiB' if self.size % 1024 == 0 else f'{self.size} B'
        words = [f'QD{self.depth}' + (f' batch {self.batch}' if self.batch > 1 else ''),
                 f'{size} {"write" if self.write else "read"}']
        words += ['registered'] * self.fixed + [f'{self.vec} iovecs'] * bool(self.vec)
        words += ['polled'] * (self.poll and not self.submit) + ['submission'] * self.submit
        words += ['DEFER_TASKRUN'] * self.defer + ['huge pages'] * self.huge
        words += ['packed'] * self.packed + [self.sched] * (self.sched != 'none')
        words += [f'{self.threads} threads'] * (self.threads > 1)
        return ', '.join(words)

    def name(self):
        return f'{self.driver} {self.path}: {self.load()}'


def measure_all(rows, kernel, keep=0, progress=lambda text: None):
    """Measures rows, booting and loading as seldom as possible: {row: figures}."""
    drivers = {d: guest.stage(d, kernel) for d in {row.driver for row in rows}}
    by_cpus = {}
    for row in dict.fromkeys(rows):
        by_cpus.setdefault(row.cpus(), []).append(row)

    def one_guest(cpus):
        words = f'{cpus} CPU{"s" * (cpus > 1)}'
        groups = {}
        for row in by_cpus[cpus]:
            groups.setdefault((row.driver, row.all_params()), []).append(row)
        figures = {}
        progress(f'{words}: booting')
        with guest.Guest(cpus, kernel, keep=keep) as vm:
            for (driver, params), group in groups.items():
                progress(f'{words}: driver {driver} {params}'.rstrip() + f', {len(group)} rows')
                figures.update(zip(group, vm.measure(drivers[driver], params, group)))
        return figures

    # Counting is a matter of one thread of QEMU's: two guests take no longer.
    figures = {}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        try:
            for part in pool.map(one_guest, sorted(by_cpus)):
                figures.update(part)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return {row: figures[row] for row in rows}
