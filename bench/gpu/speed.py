# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is fast: bundles beside PyTorch's attention, in one process, one after the other."""

import contextlib
import glob
import hashlib
import math
import os
import statistics
import time

import ranks as ring
import runtime

# What a multiprocessor of Hopper multiplies and adds in a cycle, of 16-bit floats.
HOPPER_FLOPS_PER_CYCLE = 4096
# Seconds for all samples of one variant.
MOST_SECONDS = 3


class Bench:
    def __init__(self, directory, alive=lambda: None):
        import torch
        self.torch, self.directory, self.alive = torch, directory, alive
        torch.cuda.init()
        torch.zeros(1, device="cuda")  # makes the context current
        self.runtime = runtime.Runtime(os.path.join(directory, "libburst_runtime.so"))
        self.programs = {}

    # -----------------------------------------------------------------------
    # Programs and tensors
    # -----------------------------------------------------------------------

    def program(self, name, cubins=None):
        """A bundle. With a folder of kernels it is another one, see `kernels_of`."""
        key = name, cubins
        if key not in self.programs:
            self.programs[key] = self.runtime.load(os.path.join(self.directory, name + ".so"))
        return self.programs[key]

    @contextlib.contextmanager
    def kernels_of(self, cubins):
        """Programs that first run in here have the kernels of a folder in place of their own, as
        far as it has them."""
        if cubins:
            os.environ["BURST_GPU_CUBINS"] = cubins
        try:
            yield
        finally:
            os.environ.pop("BURST_GPU_CUBINS", None)

    def variants(self, cell):
        """Programs of a cell, and kernels for them: those of bundles, and those of folders
        variants/VARIANT/PROGRAM, which hold KERNEL.cubin."""
        for variant, name in cell["programs"].items():
            yield variant, name, None
        name = cell["programs"].get("hopper", "")
        for folder in sorted(glob.glob(os.path.join(self.directory, "variants", "*",
                                                    name.rpartition(".")[0]))):
            if name:
                yield os.path.basename(os.path.dirname(folder)), name, folder

    def digest(self, name):
        with open(os.path.join(self.directory, name + ".so"), "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()[:8]

    def tensor(self, *shape):
        return self.torch.randn(*shape, device="cuda", dtype=self.torch.bfloat16)

    def tensors(self, cell, length, backward=False):
        """Of a rank that holds `length` positions. Results are no numbers until they are
        written."""
        torch, heads, key_heads, dim = self.torch, cell["heads"], cell["key_heads"], cell["dim"]
        found = {"q": self.tensor(1, length, heads, dim),
                 "k": self.tensor(1, length, key_heads, dim),
                 "v": self.tensor(1, length, key_heads, dim)}
        found["o"] = torch.full_like(found["q"], math.nan)
        found["lse"] = torch.full((1, heads, length), math.nan, device="cuda",
                                  dtype=torch.float32)
        if backward:
            found["do"] = self.tensor(1, length, heads, dim)
            for name in "qkv":
                found["d" + name] = torch.full_like(found[name], math.nan)
        return found

    def bind(self, program, tensors, length):
        """`length`: of the whole sequence."""
        shapes = {}
        for parameter in program.parameters:
            name = parameter.name.decode()
            if name in tensors:
                shapes[name] = list(tensors[name].shape)
                shapes[name][parameter.shard_dim] = length
        return program.bind(tensors, program.extents(shapes))

    # -----------------------------------------------------------------------
    # Time
    # -----------------------------------------------------------------------

    def events(self):
        return (self.torch.cuda.Event(enable_timing=True) for _ in range(2))

    def milliseconds(self, call, count):
        begin, end = self.events()
        begin.record()
        for _ in range(count):
            call()
        end.record()
        self.torch.cuda.synchronize()
        return begin.elapsed_time(end) / count

    def count_of(self, call):
        """How often to call in a row, so that what asks for it is not seen, and how many
        milliseconds a call takes. What is slow is not called again to get warm."""
        once = self.milliseconds(call, 1)
        for _ in range(2 if once < 300 else 0):
            once = self.milliseconds(call, 1)
        return max(1, min(50, int(20 / max(once, 0.01)))), once

    def time_each(self, calls, rounds, watch):
        """Milliseconds of each call, interleaved: a list of samples by name, of no more than
        MOST_SECONDS together, though at least one. `watch` is called while the GPU has work of
        the first one."""
        counts, left = {}, {}
        for name, call in calls.items():
            counts[name], once = self.count_of(call)
            left[name] = 1000 * MOST_SECONDS - once
            self.alive()
        samples = {name: [] for name in calls}
        for turn in range(rounds):
            for name, call in calls.items():
                if samples[name] and left[name] < counts[name] * samples[name][-1]:
                    continue
                samples[name].append(self.milliseconds(call, counts[name]))
                left[name] -= counts[name] * samples[name][-1]
            self.alive()
            if turn == 0:
                first = next(iter(calls))
                for _ in range(counts[first]):
                    calls[first]()
                watch()
                self.torch.cuda.synchronize()
        return samples

    def host_microseconds(self, call, count):
        """Of the host, to ask for a run."""
        self.torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(count):
            call()
        passed = time.perf_counter() - begin
        self.torch.cuda.synchronize()
        return round(1e6 * passed / count, 1)

    def clock_and_power(self):
        """MHz and W; None where PyTorch has no library to ask."""
        try:
            return self.torch.cuda.clock_rate(), self.torch.cuda.power_draw() / 1000
        except (ImportError, RuntimeError, AttributeError):
            return None, None

    # -----------------------------------------------------------------------
    # Peers
    # -----------------------------------------------------------------------

    def peers(self, cell, tensors):
        """PyTorch's attention by cuDNN, and FlashAttention-2, which its flash backend is. Which
        of them were given keys and values repeated for every head of queries, and why those
        are missing that are."""
        import torch.nn.functional as F
        from torch.nn.attention import SDPBackend, sdpa_kernel
        torch = self.torch
        group = cell["heads"] // cell["key_heads"]
        found, repeated, reasons = {}, [], {}

        def make(backend, repeats):
            q, k, v = (tensors[name].transpose(1, 2) for name in "qkv")
            if repeats:
                k, v = (x.repeat_interleave(group, 1) for x in (k, v))

            def forward(q=q, k=k, v=v):
                with sdpa_kernel(backend):
                    return F.scaled_dot_product_attention(
                        q, k, v, is_causal=cell["causal"], enable_gqa=not repeats and group > 1)
            if not cell["backward"]:
                def run():
                    with torch.no_grad():
                        return forward()
                return run
            leaves = [x.detach().requires_grad_() for x in (q, k, v)]
            out = forward(*leaves)
            upstream = tensors["do"].transpose(1, 2)
            return lambda: torch.autograd.grad(out, leaves, upstream, retain_graph=True)

        for name, backend in (("cudnn", SDPBackend.CUDNN_ATTENTION),
                              ("flash2", SDPBackend.FLASH_ATTENTION)):
            for repeats in (False, True):
                try:
                    call = make(backend, repeats)
                    call()
                    torch.cuda.synchronize()
                except RuntimeError as error:
                    reasons.setdefault(name, str(error).splitlines()[0])
                    continue
                found[name] = call
                reasons.pop(name, None)
                if repeats:
                    repeated.append(name)
                break
        return found, repeated, reasons

    # -----------------------------------------------------------------------
    # Truth
    # -----------------------------------------------------------------------

    def weights(self, cell, q, keys, rows):
        """Rows of softmax(q k^T) in f64, for queries at those positions."""
        torch = self.torch
        scores = q.double() @ keys.double().T / math.sqrt(cell["dim"])
        if cell["causal"]:
            hidden = torch.arange(keys.size(0), device="cuda")[None, :] > rows[:, None]
            scores = scores.masked_fill(hidden, -math.inf)
        return scores.softmax(-1)

    def ratio(self, found, parts, weight):
        """The largest error over its bound: both factors of the last product, and the result,
        are rounded to 8 bits."""
        exact = parts @ weight
        bound = 2.0**-8 * (parts.abs() @ weight.abs() + exact.abs()) + 1e-5
        worst = ((found.double() - exact).abs() / bound).max()
        return float(worst) if worst == worst else math.inf

    def check_forward(self, cell, t, length):
        torch, group = self.torch, cell["heads"] // cell["key_heads"]
        worst = 0.0
        for head in (0, cell["heads"] - 1):
            rows = torch.randint(length, (min(64, length),), device="cuda")
            keys, values = t["k"][0, :, head // group], t["v"][0, :, head // group]
            weights = self.weights(cell, t["q"][0, rows, head], keys, rows)
            worst = max(worst, self.ratio(t["o"][0, rows, head], weights, values.double()))
        return worst

    def check_backward(self, cell, t, length):
        """Some rows of dq, and some of dk and dv: those take all queries of a group's heads."""
        torch, group = self.torch, cell["heads"] // cell["key_heads"]
        scale = 1 / math.sqrt(cell["dim"])
        head = cell["heads"] - 1
        shared = head // group
        keys, values = (t[name][0, :, shared].double() for name in "kv")

        def of_scores(head, rows):
            """Weights, and gradients by scores, of rows of a head."""
            weights = self.weights(cell, t["q"][0, rows, head], keys, rows)
            upstream = t["do"][0, rows, head].double()
            delta = (upstream * t["o"][0, rows, head].double()).sum(-1)[:, None]
            return weights, weights * (upstream @ values.T - delta) * scale

        rows = torch.randint(length, (min(64, length),), device="cuda")
        _, gradients = of_scores(head, rows)
        worst = self.ratio(t["dq"][0, rows, head], gradients, keys)
        # The last keys see few queries, the first ones all.
        chosen = torch.randint(length, (min(32, length),), device="cuda")
        parts = {"k": [], "v": []}
        factors = {"k": [], "v": []}
        for each in range(shared * group, (shared + 1) * group):
            for begin in range(0, length, 4096):
                some = torch.arange(begin, min(length, begin + 4096), device="cuda")
                weights, gradients = of_scores(each, some)
                parts["k"].append(gradients[:, chosen].T)
                parts["v"].append(weights[:, chosen].T)
                factors["k"].append(t["q"][0, some, each].double())
                factors["v"].append(t["do"][0, some, each].double())
        for name in "kv":
            worst = max(worst, self.ratio(t["d" + name][0, chosen, shared],
                                          torch.cat(parts[name], 1), torch.cat(factors[name], 0)))
        return worst

    # -----------------------------------------------------------------------
    # Cells
    # -----------------------------------------------------------------------

    def speed(self, cell):
        """All programs of a cell, and peers."""
        torch, length, backward = self.torch, cell["length"], cell["backward"]
        torch.manual_seed(0)
        t = self.tensors(cell, length, backward)
        stream = self.runtime.stream(torch.cuda.current_stream().cuda_stream)
        found = {"verdict": "passed", "without": {}, "ms": {}, "tflops": {}, "error_over_bound": {},
                 "bundles": {}}
        calls = {}
        for variant, name, cubins in self.variants(cell):
            self.alive()
            try:
                forward = self.program(name.replace("backward", "forward"),
                                       None if backward else cubins)
                bound = self.bind(forward, t, length)
                with self.kernels_of(None if backward else cubins):
                    forward.run(bound, stream)
                program = forward
                if backward:
                    program = self.program(name, cubins)
                    bound = self.bind(program, t, length)
                    with self.kernels_of(cubins):
                        program.run(bound, stream)
                self.runtime.synchronize(stream)
            except runtime.Failure as failure:
                found["without"][variant] = str(failure)
                continue
            error = (self.check_backward if backward else self.check_forward)(cell, t, length)
            found["error_over_bound"][variant] = error
            found["bundles"][variant] = self.digest(name)
            if not error <= 1:
                found.update(verdict="failed", reason=f"{variant} is wrong")
            for result in ("dq", "dk", "dv") if backward else ("o", "lse"):
                t[result].fill_(math.nan)
            if backward:  # the next variant writes them again
                t["o"].fill_(math.nan)
            calls[variant] = lambda program=program, bound=bound: program.run(bound, stream)
        if not calls:
            return {**found, "verdict": "failed", "reason": "no program runs"}
        found["worst_error_over_bound"] = max(found["error_over_bound"].values())
        own = list(calls)
        if backward:
            forward.run(self.bind(forward, t, length), stream)
        self.alive()
        peers, found["repeated"], reasons = self.peers(cell, t)
        found["without"].update(reasons)
        calls.update(peers)
        seen = []
        rounds = cell.get("rounds", 15)
        samples = self.time_each(calls, rounds, lambda: seen.append(self.clock_and_power()))
        self.runtime.synchronize(stream)
        found["host_us"] = self.host_microseconds(calls[own[0]], min(5, rounds))
        flops = (10 if backward else 4) * length * length * cell["dim"] * cell["heads"]
        flops /= 2 if cell["causal"] else 1
        for name, times in samples.items():
            times.sort()
            found["ms"][name] = [times[len(times) // 20], statistics.median(times),
                                 times[-1 - len(times) // 20]]
            found["tflops"][name] = flops / statistics.median(times) / 1e9
        best = max(own, key=lambda name: found["tflops"][name])
        for peer in peers:
            found[f"over_{peer}"] = found["tflops"][best] / found["tflops"][peer]
        found["clock_mhz"], found["watts"] = seen[0]
        properties = torch.cuda.get_device_properties(0)
        if found["clock_mhz"] and properties.major == 9:
            peak = properties.multi_processor_count * HOPPER_FLOPS_PER_CYCLE * found["clock_mhz"]
            found["of_peak"] = found["tflops"][best] * 1e6 / peak
        return found

    def ring(self, cell):
        """All ranks as threads that share the GPU, over one rank alone."""
        torch, ranks, length = self.torch, cell["ranks"], cell["length"]
        without = {}
        for variant, (name, alone_name) in cell["programs"].items():
            program, alone = self.program(name), self.program(alone_name)
            if program.num_ranks != ranks:
                return {"verdict": "failed",
                        "reason": f"{program.num_ranks} ranks, wanted {ranks}"}
            torch.manual_seed(0)
            whole = self.tensors(cell, length)
            mine = [self.shard(whole, rank, ranks, length) for rank in range(ranks)]
            bound = [self.bind(program, shard, length) for shard in mine]
            cuda_streams = [torch.cuda.Stream() for _ in range(ranks)]
            streams = [self.runtime.stream(stream.cuda_stream) for stream in cuda_streams]
            transports = self.runtime.transports(ranks)
            stream = self.runtime.stream(torch.cuda.current_stream().cuda_stream)
            bound_alone = self.bind(alone, whole, length)
            torch.cuda.synchronize()

            def run_ranks(program=program, bound=bound, streams=streams, transports=transports):
                ring.each_rank(ranks, lambda rank: program.run(
                    bound[rank], streams[rank], rank, transports[rank]))
                for each in streams:
                    self.runtime.synchronize(each)

            def run_alone(alone=alone, bound=bound_alone, stream=stream):
                alone.run(bound, stream)
                self.runtime.synchronize(stream)

            try:
                run_alone()
                run_ranks()
            except runtime.Failure as failure:
                without[variant] = str(failure)
                continue
            error = max(self.check_forward(cell, whole, length), self.check_shards(
                cell, whole, mine, ranks, length))
            times = {"ranks": [], "alone": []}
            ends = time.monotonic() + 2 * MOST_SECONDS
            for turn in range(cell.get("rounds", 15)):
                self.alive()
                if turn and time.monotonic() > ends:
                    break
                for key, call in (("ranks", run_ranks), ("alone", run_alone)):
                    begin = time.perf_counter()
                    call()
                    times[key].append(1000 * (time.perf_counter() - begin))
            medians = {key: statistics.median(values) for key, values in times.items()}
            return {"verdict": "passed" if error <= 1 else "failed", "variant": variant,
                    "without": without, "ms": medians, "worst_error_over_bound": error,
                    "bundles": {variant: self.digest(name)},
                    "over_alone": medians["ranks"] / medians["alone"]}
        return {"verdict": "failed", "reason": "no program runs", "without": without}

    def halves(self, rank, ranks, length):
        """What a rank holds of a sequence that is sharded in zigzag: two slices."""
        part = length // (2 * ranks)
        return [slice(at * part, (at + 1) * part) for at in (rank, 2 * ranks - 1 - rank)]

    def shard(self, whole, rank, ranks, length):
        torch = self.torch
        first, second = self.halves(rank, ranks, length)
        found = {name: torch.cat([whole[name][:, first], whole[name][:, second]], 1)
                 for name in ("q", "k", "v", "o")}
        found["lse"] = torch.cat([whole["lse"][:, :, first], whole["lse"][:, :, second]], 2)
        return found

    def check_shards(self, cell, whole, shards, ranks, length):
        together = dict(whole)
        together["o"] = self.torch.full_like(whole["o"], math.nan)
        part = length // (2 * ranks)
        for rank, shard in enumerate(shards):
            for at, place in enumerate(self.halves(rank, ranks, length)):
                together["o"][:, place] = shard["o"][:, at * part:(at + 1) * part]
        return self.check_forward(cell, together, length)

    def once(self, cell):
        """Runs of a program, for who counts what its kernels do."""
        torch, length = self.torch, cell["length"]
        torch.manual_seed(0)
        t = self.tensors(cell, length, cell["backward"])
        stream = self.runtime.stream(torch.cuda.current_stream().cuda_stream)
        names = [cell["program"]]
        if cell["backward"]:
            names.insert(0, cell["program"].replace("backward", "forward"))
        for name in names:
            program = self.program(name)
            program.run(self.bind(program, t, length), stream)
            self.runtime.synchronize(stream)

    # -----------------------------------------------------------------------
    # Ceilings that take PyTorch
    # -----------------------------------------------------------------------

    def copy(self, cell):
        """Bytes read and written in a second, within the GPU's memory."""
        torch = self.torch
        one = torch.empty(cell["bytes"], device="cuda", dtype=torch.uint8)
        other = torch.empty_like(one)
        times = sorted(self.milliseconds(lambda: other.copy_(one), 1) for _ in range(11))
        return {"verdict": "passed",
                "tb_per_s": 2 * cell["bytes"] / times[len(times) // 2] / 1e9}

    def matmul(self, cell):
        """What cuBLAS reaches."""
        torch, size = self.torch, cell["size"]
        make = torch.zeros if cell["zeros"] else torch.randn
        a, b = (make(size, size, device="cuda", dtype=torch.bfloat16) for _ in range(2))
        a @ b
        times = sorted(self.milliseconds(lambda: a @ b, 1) for _ in range(11))
        return {"verdict": "passed", "rate": 2 * size**3 / times[len(times) // 2] / 1e9}
