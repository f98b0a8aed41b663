# SPDX-License-Identifier: GPL-2.0-only
"""A guest that measures: boots it by tests/vm/run with the plugin, hands it jobs."""
import fcntl
import itertools
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import symbols

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parent.parent
BUILD = TOP / 'build' / 'bench'

# What "ours" means instead of the module under build/
OURS = None

# What a guest whose instructions take a nanosecond would find by measuring
CLOCK = ' tsc_early_khz=1000000 lpj=4000000'

# The disks every guest has; what tells them apart is the ring.
DISKS = {'split': 'vda', 'packed': 'vdb'}


class Fault(Exception):
    """Something that isn't a figure: no guest, no driver, a failed I/O."""


def release(kernel):
    """The newest installed kernel that --kernel means."""
    if pathlib.Path(f'/lib/modules/{kernel}/modules.dep').exists():
        return kernel
    found = [p.parent.name for p in pathlib.Path('/lib/modules').glob(f'{kernel}[.-]*/modules.dep')
             if not re.search(r'-(rt|cloud)-', p.parent.name)]
    if not found:
        raise Fault(f'no kernel {kernel} is installed (see tests/vm/need +kernels)')
    return max(found, key=lambda r: [int(n) for n in re.findall(r'\d+', r)])


def driver_file(driver, rel):
    """The module file of a driver: stock, ours or a path."""
    if driver == 'stock':
        files = list(pathlib.Path(f'/lib/modules/{rel}').glob('kernel/drivers/block/virtio_blk.ko*'))
        path = files[0] if files else None
    elif driver == 'ours':
        path = pathlib.Path(OURS) if OURS else TOP / 'build' / rel / 'virtio_blk.ko'
    else:
        path = pathlib.Path(driver)
    if not path or not path.exists():
        raise Fault(f'driver {driver}: there is no {path or "virtio_blk.ko"}'
                    + (f' (make module KVER={rel})' if driver == 'ours' else ''))
    return path


def stage(driver, kernel):
    """A copy of the module, unpacked, so that a build meanwhile does no harm."""
    rel = release(kernel)
    path = driver_file(driver, rel)
    to = BUILD / f'{re.sub("[^a-z0-9]", "-", str(driver))}-{rel}.ko'
    tool = {'.xz': 'xz', '.zst': 'zstd', '.gz': 'gzip'}.get(path.suffix)
    if not tool:
        shutil.copyfile(path, to)
    else:
        with open(to, 'wb') as out:
            subprocess.run([tool, '-dc', str(path)], stdout=out, check=True)
    return to


def running(pid):
    """Whether that process is a runner of ours, not another one by now."""
    try:
        return b'vm/run' in pathlib.Path(f'/proc/{pid}/cmdline').read_bytes()
    except OSError:
        return False


def middle(figures):
    """The median of several measurements of a row, or what went wrong in one."""
    for f in figures:
        if 'error' in f:
            return f
    return sorted(figures, key=lambda f: f.get('kernel', f['ns']))[len(figures) // 2]


class Guest:
    """One running guest. With keep it outlives this program, to be found again."""

    def __init__(self, cpus, kernel='6.12', plugin=True, keep=0, start=True):
        self.cpus, self.rel, self.plugin = cpus, release(kernel), plugin
        self.dir = BUILD / f'guest-{self.rel}-{cpus}{"" if plugin else "-times"}'
        self.keep = keep
        self.jobs = 0
        self.sections = 0
        self.loaded = {}
        self.process = self.pid = None
        self.dir.mkdir(parents=True, exist_ok=True)
        self.lock = open(self.dir / 'lock', 'w')
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print('waiting for another measurement in the same guest…', file=sys.stderr)
            fcntl.flock(self.lock, fcntl.LOCK_EX)
        if not self.find() and start:
            self.start()

    def find(self):
        """Takes over a guest left running, unless the programs in it are old."""
        try:
            state = json.loads((self.dir / 'state').read_text())
        except (OSError, ValueError):
            return False
        if not running(state['pid']):
            return False
        self.pid = state['pid']
        newest = max(f.stat().st_mtime for f in (BUILD / 'client', BUILD / 'meter.so', HERE / 'agent'))
        if newest > state['started']:
            self.stop()
            return False
        self.jobs, self.sections = state['jobs'], state['sections']
        return True

    def command(self):
        # Counted, a kick is dealt with at once; timed, as QEMU does by default
        disk = f'null:4T,queues={self.cpus}' + (',prop:ioeventfd=off' if self.plugin else '')
        cmd = ['nice', str(TOP / 'tests/vm/run'), '--kernel', self.rel, '--driver', 'none',
               '--smp', str(self.cpus), '--share', str(self.dir / 'share'),
               '--timeout', str(self.keep or 3600), '--log', str(self.dir / 'log'),
               '--append', 'nokaslr' + CLOCK * self.plugin, '--disk', disk, '--disk', disk + ',packed']
        if self.plugin:
            # A nanosecond an instruction: else the timer's ticks depend on how
            # fast this machine is just now, and are counted too.
            cmd += ['--accel', 'tcg', '--qemu', '-icount shift=0 '
                    f'-plugin {BUILD}/meter.so,out={self.dir}/counts']
        return cmd + ['--', str(HERE / 'agent')]

    def start(self):
        share = self.dir / 'share'
        shutil.rmtree(share, ignore_errors=True)
        share.mkdir()
        shutil.copy(BUILD / 'client', share / 'client')
        if self.kallsyms().exists():
            (share / 'kallsyms').touch()
        (self.dir / 'counts').unlink(missing_ok=True)
        out = open(self.dir / 'output', 'w')
        path = os.environ['PATH']
        if self.plugin:
            path = f'{HERE}/one-thread:{path}'
        self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=out,
                                        stderr=subprocess.STDOUT, start_new_session=True,
                                        env={**os.environ, 'PATH': path})
        self.pid = self.process.pid
        self.started = time.time()
        self.save()
        self.wait_for(share / 'ready', self.BOOT_SECONDS)
        if not self.kallsyms().exists():
            shutil.copy(share / 'kallsyms', self.kallsyms())

    def save(self):
        (self.dir / 'state').write_text(json.dumps({
            'pid': self.pid, 'started': getattr(self, 'started', time.time()),
            'jobs': self.jobs, 'sections': self.sections}))

    def kallsyms(self):
        """The kernel's own symbols: cached, for reading them takes the guest seconds."""
        image = pathlib.Path(f'/boot/vmlinuz-{self.rel}')
        return BUILD / f'kallsyms-{self.rel}-{int(image.stat().st_mtime)}'

    def alive(self):
        if self.process:
            return self.process.poll() is None
        return bool(self.pid) and running(self.pid)

    BOOT_SECONDS = 400  # 15 on an idle machine

    def wait_for(self, path, seconds):
        end = time.time() + seconds
        while not path.exists():
            if not self.alive() or time.time() > end:
                said = (self.dir / 'output').read_text()[-2000:]
                over = 'ended' if not self.alive() else f'gave no answer in {seconds} s'
                self.stop()
                raise Fault(f'the guest {over}; it said:\n{said}(kernel log: {self.dir}/log)')
            time.sleep(0.05)

    def job(self, lines, seconds):
        """Runs lines of shell in the guest, returns the lines they printed."""
        share = self.dir / 'share'
        number, self.jobs = self.jobs, self.jobs + 1
        (share / 'job.new').write_text('\n'.join(lines) + '\n')
        (share / 'job.new').rename(share / f'job.{number}')
        self.save()
        self.wait_for(share / f'result.{number}', seconds)
        return (share / f'result.{number}').read_text().splitlines()

    def measure(self, staged, params, rows):
        """Loads a driver and measures rows with it; each gets a dict of figures."""
        module = self.dir / 'share' / 'virtio_blk.ko'
        shutil.copyfile(staged, module)
        lines = [f'load ./virtio_blk.ko {params}']
        for number, row in enumerate(rows):
            disk = DISKS['packed' if row.packed else 'split']
            lines.append(f'scheduler {disk} {row.sched}')
            lines += [f'row {number} {" ".join(row.client_args(disk))}'] * row.repeat
        said = self.job(lines, 120 + 60 * len(lines))
        return self.results(rows, said, module)

    def results(self, rows, said, module):
        texts, figures = {}, [[] for _ in rows]
        counts = self.new_sections()
        for line in said:
            word, _, rest = line.partition(' ')
            number, _, rest2 = rest.partition(' ')
            if word == 'text':
                texts[number] = int(rest2, 16)
            elif word == 'row':
                figures[int(number)].append(json.loads(rest2))
                if self.plugin:
                    figures[int(number)][-1]['section'] = next(counts)
            elif word == 'fail':
                figures[int(number)].append({'error': rest2})
            else:
                raise Fault(f'in the guest: {line}')
        if self.plugin:
            table = symbols.Table(self.kallsyms(), module, texts)
            for f in itertools.chain(*figures):
                if 'section' in f:
                    symbols.add_counts(f, table)
        return [middle(f) for f in figures]

    def new_sections(self):
        """The plugin's sections that haven't been read yet, each as its lines."""
        if not self.plugin:
            return iter(())
        text = (self.dir / 'counts').read_text()
        parts = text.split('section ')[1:]
        new = parts[self.sections:]
        self.sections = len(parts)
        self.save()
        return iter(new)

    def stop(self):
        if self.alive():
            (self.dir / 'share' / 'quit').touch()
            end = time.time() + 20
            while self.alive() and time.time() < end:
                time.sleep(0.05)
            if self.alive():
                os.kill(self.pid, signal.SIGTERM)
        (self.dir / 'state').unlink(missing_ok=True)

    def __enter__(self):
        return self

    def __exit__(self, *what):
        if not self.keep:
            self.stop()
            self.judge()

    def judge(self):
        """A report in the kernel's log makes figures worthless; other ends don't."""
        status = self.process.wait() if self.process else 0
        if status == 0:
            return
        said = (self.dir / 'output').read_text()[-3000:]
        if status == 120:
            raise Fault(f'the guest\'s kernel complained:\n{said}(kernel log: {self.dir}/log)')
        print(f'\nthe guest ended with {status}: {said}', file=sys.stderr)
