# SPDX-License-Identifier: GPL-2.0-only
"""From addresses to functions and from functions to stages."""
import bisect
import collections
import pathlib
import re
import subprocess

HERE = pathlib.Path(__file__).resolve().parent

# The function whose entries are kicks: one for each register layout
KICKS = {'vp_notify', 'vp_notify_with_data', 'vm_notify', 'vm_notify_with_data'}
CONTENDED = {'native_queued_spin_lock_slowpath', '__pv_queued_spin_lock_slowpath',
             'queued_read_lock_slowpath', 'queued_write_lock_slowpath'}


def plain(name):
    """Without what the compiler appended: foo.cold, foo.isra.0 are foo."""
    return name.split('.')[0]


class Table:
    """The symbols of a kernel and of the driver loaded into it."""

    def __init__(self, kallsyms, module, texts):
        found = {}
        with open(kallsyms) as lines:
            for line in lines:
                word = line.split()
                if word[1] in 'tTwW' and len(word) == 3:
                    found.setdefault(int(word[0], 16), word[2])
        self.module_names = set()
        for section, offset, name in module_symbols(module):
            if section in texts:
                found[texts[section] + offset] = name
                self.module_names.add(plain(name))
        self.addresses = sorted(found)
        self.names = [found[a] for a in self.addresses]

    def find(self, address):
        """(function, is its first instruction)"""
        i = bisect.bisect(self.addresses, address) - 1
        if i < 0:
            return 'unknown', False
        return plain(self.names[i]), self.addresses[i] == address and '.cold' not in self.names[i]


def module_symbols(module):
    """Functions of a .ko: section, offset, name."""
    text = subprocess.run(['objdump', '-t', '-w', str(module)], check=True,
                          capture_output=True, text=True).stdout
    pattern = re.compile(r'^([0-9a-f]+) (.{7}) (\.\S*text\S*)\s+[0-9a-f]+ (?:\.hidden )?(\S+)$', re.M)
    for value, flags, section, name in pattern.findall(text):
        if 'F' in flags:
            yield section, int(value, 16), name


class Stages:
    """Which stage of an I/O's way a function belongs to, by the file 'stages'."""

    def __init__(self):
        self.rules = []
        for line in (HERE / 'stages').read_text().splitlines():
            line = line.split('#')[0].strip()
            if line:
                stage, pattern = line.split(None, 1)
                self.rules.append((stage, re.compile(pattern.strip())))
        self.order = list(dict.fromkeys(['driver'] + [r[0] for r in self.rules] + ['other']))

    def of(self, function, in_module):
        if in_module:
            return 'driver'
        for stage, pattern in self.rules:
            if pattern.match(function):
                return stage
        return 'other'


STAGES = Stages()


def add_counts(figures, table):
    """Turns a section of the plugin's output into figures per I/O."""
    lines = figures.pop('section').splitlines()
    ios = figures['ios']
    user, kernel = map(int, lines[0].split())
    cost, calls = collections.Counter(), collections.Counter()
    for line in lines:
        word = line.split()
        if word[0] != 't':
            continue
        length, times = int(word[2]), int(word[3])
        name, first = table.find(int(word[1], 16))
        cost[name] += length * times
        if first:
            calls[name] += times
    stages = collections.Counter()
    for name, n in cost.items():
        stages[STAGES.of(name, name in table.module_names)] += n
    figures.update(
        user=user / ios, kernel=kernel / ios,
        kicks=sum(calls[k] for k in KICKS) / ios,
        contended=sum(calls[c] for c in CONTENDED) / ios,
        cpus=[int(line.split()[2]) / ios for line in lines if line.startswith('cpu ')],
        stages={s: stages[s] / ios for s in STAGES.order if stages[s]},
        functions={n: [c / ios, calls[n] / ios] for n, c in cost.most_common()})
    for key in ('enters', 'irqs', 'switches'):
        figures[key] /= ios
