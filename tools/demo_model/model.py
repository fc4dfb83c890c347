"""The text model of Kimi K3 in torch (float32, CPU), with gradients.

The KDA core, the routed experts, SiTU-GLU, RMS norm and the mix of attention residuals run in kernels.c (compiled
on first use) behind autograd functions; everything else is plain torch. With `reference` set a slow path of plain
torch is taken instead; ./check compares the two, gradients included.
"""
import contextlib
import ctypes
import math
import os
import subprocess
import tempfile

import torch
import torch.nn.functional as F

HERE = os.path.dirname(os.path.abspath(__file__))


def _lib():
    source = os.path.join(HERE, "kernels.c")
    built = os.path.join(os.environ.get("XDG_CACHE_HOME", tempfile.gettempdir()), f"deltafin-demo-kernels-{os.getuid()}.so")
    if not os.path.exists(built) or os.path.getmtime(built) < os.path.getmtime(source):
        partial = f"{built}.{os.getpid()}"
        subprocess.check_call(["cc", "-O3", "-march=native", "-ffast-math", "-fopenmp", "-shared", "-fPIC", source, "-o", partial, "-lm"])
        os.replace(partial, built)
    return ctypes.CDLL(built)


LIB = _lib()
P = lambda t: ctypes.c_void_p(t.data_ptr())
I, FL, LG = ctypes.c_int, ctypes.c_float, ctypes.c_long
LB, EPS, MLA_EPS, THREADS = -5.0, 1e-5, 1e-6, 16

CFG = dict(hidden=128, layers=8, res_block=3, kda_heads=4, kda_dim=32, mla_heads=4, nope=16, rope=16, vdim=32, q_rank=64, kv_rank=48,
           experts=64, top_k=4, latent=64, inter=64, shared=2, dense=256, vocab=2560)
# Exported as F32; everything else that is not a routed expert is exported as BF16.
KEPT_F32 = ("taps", "A_log", "dt_bias", "o_norm")


class KDA(torch.autograd.Function):
    @staticmethod
    def forward(ctx, Y, Z, taps, A, on, lens):
        B, T, ld = Y.shape
        h = A.numel()
        Y, Z, taps, A, on = (t.contiguous() for t in (Y, Z, taps, A, on))
        out = torch.empty(B, T, h * 32)
        LIB.kda_fwd(I(B), I(T), I(h), I(ld), FL(LB), FL(EPS), P(lens), P(Y), P(Z), P(taps), P(A), P(on), P(out))
        ctx.save_for_backward(Y, Z, taps, A, on, lens)
        return out

    @staticmethod
    def backward(ctx, d):
        Y, Z, taps, A, on, lens = ctx.saved_tensors
        (B, T, ld), h, d = Y.shape, A.numel(), d.contiguous()
        dY, dZ, dt, dA, dn = torch.zeros_like(Y), torch.empty_like(Z), torch.empty((B,) + taps.shape), torch.empty(B, h), torch.empty(B, h, 32)
        LIB.kda_bwd(I(B), I(T), I(h), I(ld), FL(LB), FL(EPS), P(lens), P(Y), P(Z), P(taps), P(A), P(on), P(d), P(dY), P(dZ), P(dt), P(dA), P(dn))
        return dY, dZ, dt.sum(0), dA.sum(0), dn.sum((0, 1)), None


class SiTU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, gu):
        gu = gu.contiguous()
        n, w = gu.numel() // gu.shape[-1], gu.shape[-1] // 2
        h = torch.empty(gu.shape[:-1] + (w,))
        LIB.situ_fwd(LG(n), I(w), P(gu), P(h))
        ctx.save_for_backward(gu)
        return h

    @staticmethod
    def backward(ctx, d):
        (gu,) = ctx.saved_tensors
        d, out = d.contiguous(), torch.empty_like(gu)
        LIB.situ_bwd(LG(gu.numel() // gu.shape[-1]), I(gu.shape[-1] // 2), P(gu), P(d), P(out))
        return out


class Experts(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, ids, w, W13, W2):
        x, w = x.contiguous(), w.contiguous()
        (N, L), K, (E, _, i2) = x.shape, ids.shape[1], W13.shape
        i = i2 // 2
        src, off = torch.empty(N * K, dtype=torch.int32), torch.empty(E + 1, dtype=torch.int32)
        X, GU, H, Zs, y = torch.empty(N * K, L), torch.empty(N * K, i2), torch.empty(N * K, i), torch.empty(N * K, L), torch.empty(N, L)
        LIB.moe_fwd(I(N), I(K), I(E), I(L), I(i), P(x), P(ids), P(w), P(W13), P(W2), P(src), P(off), P(X), P(GU), P(H), P(Zs), P(y))
        ctx.save_for_backward(ids, w, W13, W2, src, off, X, GU, H, Zs)
        return y

    @staticmethod
    def backward(ctx, d):
        ids, w, W13, W2, src, off, X, GU, H, Zs = ctx.saved_tensors
        d, (N, K), (E, L, i2) = d.contiguous(), ids.shape, W13.shape
        dx, dw, d13, d2 = torch.empty(N, L), torch.empty(N, K), torch.empty_like(W13), torch.empty_like(W2)
        LIB.moe_bwd(I(N), I(K), I(E), I(L), I(i2 // 2), P(ids), P(w), P(W13), P(W2), P(src), P(off), P(X), P(GU), P(H), P(Zs), P(d),
                    P(dx), P(dw), P(d13), P(d2))
        return dx, None, dw, d13, d2


class Mix(torch.autograd.Function):
    @staticmethod
    def forward(ctx, w, *v):
        v = [t.contiguous() for t in v]
        H, m = w.numel(), len(v)
        N = v[0].numel() // H
        ptr = (ctypes.c_void_p * m)(*[t.data_ptr() for t in v])
        a, r, y = torch.empty(N, m), torch.empty(N, m), torch.empty_like(v[0])
        LIB.mix_fwd(LG(N), I(m), I(H), FL(EPS), ptr, P(w), P(a), P(r), P(y))
        ctx.save_for_backward(w, a, r, *v)
        return y

    @staticmethod
    def backward(ctx, d):
        w, a, r, *v = ctx.saved_tensors
        d, H, m = d.contiguous(), w.numel(), len(v)
        dv, dw = [torch.empty_like(t) for t in v], torch.zeros(THREADS, H)
        ptr, dp = (ctypes.c_void_p * m)(*[t.data_ptr() for t in v]), (ctypes.c_void_p * m)(*[t.data_ptr() for t in dv])
        LIB.mix_bwd(LG(v[0].numel() // H), I(m), I(H), ptr, P(w), P(a), P(r), P(d), dp, P(dw))
        return (dw.sum(0),) + tuple(dv)


class RMS(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, eps):
        x, ctx.eps = x.contiguous(), eps
        y, H = torch.empty_like(x), w.numel()
        LIB.rms_fwd(LG(x.numel() // H), I(H), FL(eps), P(x), P(w), P(y))
        ctx.save_for_backward(x, w)
        return y

    @staticmethod
    def backward(ctx, d):
        x, w = ctx.saved_tensors
        d, dx, dw, H = d.contiguous(), torch.empty_like(x), torch.zeros(THREADS, w.numel()), w.numel()
        LIB.rms_bwd(LG(x.numel() // H), I(H), FL(ctx.eps), P(x), P(w), P(d), P(dx), P(dw))
        return dx, dw.sum(0), None


class FakeQuant(torch.autograd.Function):
    """MXFP4 round trip of W [E, R, C] in groups of 32 along R; the gradient passes straight through."""
    @staticmethod
    def forward(ctx, W):
        out = torch.empty_like(W)
        LIB.fakequant(I(W.shape[0]), I(W.shape[1]), I(W.shape[2]), P(W), P(out))
        return out

    @staticmethod
    def backward(ctx, d):
        return d


# ---- slow, independent versions, for ./check ----
def rms_ref(x, w, eps):
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + eps) * w


def situ_ref(gu):
    g, u = gu.chunk(2, -1)
    return 4 * torch.tanh(g / 4) * torch.sigmoid(g) * 25 * torch.tanh(u / 25)


def mix_ref(w, *v):
    v = torch.stack(v, -2)
    s = (v / torch.sqrt((v * v).mean(-1, keepdim=True) + EPS) * w).sum(-1)
    return (torch.softmax(s, -1)[..., None] * v).sum(-2)


def kda_ref(Y, Z, taps, A, on, lens):
    B, T, _ = Y.shape
    h = A.numel()
    p = h * 32
    c = []
    for x in range(3):
        r = F.pad(Y[..., x * p:(x + 1) * p], (0, 0, 3, 0))
        c.append(F.silu(sum(r[:, j:j + T] * taps[x, :, j] for j in range(4))).view(B, T, h, 32))
    l2 = lambda a: a / torch.sqrt((a * a).sum(-1, keepdim=True) + 1e-6)
    q, k, v = l2(c[0]) * 32 ** -.5, l2(c[1]), c[2]
    a, beta = torch.exp(LB * torch.sigmoid(A[:, None] * Z.view(B, T, h, 32))), torch.sigmoid(Y[..., 4 * p:4 * p + h])
    S, out = torch.zeros(B, h, 32, 32), []
    for t in range(T):
        S = S * a[:, t, ..., None]
        e = v[:, t] - torch.einsum("bhk,bhkv->bhv", k[:, t], S)
        S = S + k[:, t, ..., None] * (beta[:, t, :, None] * e)[..., None, :]
        out.append(torch.einsum("bhk,bhkv->bhv", q[:, t], S))
    o = rms_ref(torch.stack(out, 1), on, EPS) * torch.sigmoid(Y[..., 3 * p:4 * p].reshape(B, T, h, 32))
    return o.reshape(B, T, p) * (torch.arange(T)[None] < lens[:, None])[..., None]


def experts_ref(x, ids, w, W13, W2):
    h = situ_ref(torch.einsum("nl,eli->nei", x, W13))
    z = torch.einsum("nei,eil->nel", h, W2)
    full = torch.zeros(x.shape[0], W13.shape[0]).scatter_add(1, ids.clamp(min=0).long(), w * (ids >= 0))
    return (full[..., None] * z).sum(1)


class Model(torch.nn.Module):
    def __init__(self, cfg=CFG, seed=1):
        super().__init__()
        self.c, c = cfg, cfg
        g = torch.Generator().manual_seed(seed)
        H = c["hidden"]
        self.p = torch.nn.ParameterDict()
        self.quant = self.reference = False
        self.local, self.local_cap, self.logit_penalty, self.spread = 0.0, .25, 1e-3, .05  # see ffn; what they cost is summed in self.aux
        self.aux, self.share = 0.0, {}

        def put(name, t):
            self.p[name.replace(".", "/")] = torch.nn.Parameter(t)

        def mat(name, *shape, gain=1.0, fan=None):
            put(name, torch.randn(*shape, generator=g) * gain / math.sqrt(fan or shape[-1]))

        ones = lambda n: torch.ones(n)
        put("embed", torch.randn(c["vocab"], H, generator=g) * .5)
        put("head", torch.randn(c["vocab"], H, generator=g) * .02)
        for n in ("norm", "output_attn_res_norm"):
            put(n, ones(H))
        put("output_attn_res_proj", torch.zeros(H))
        for i in range(c["layers"]):
            L = f"{i}."
            for n in ("input_layernorm", "post_attention_layernorm", "self_attention_res_norm", "mlp_res_norm"):
                put(L + n, ones(H))
            for n in ("self_attention_res_proj", "mlp_res_proj"):
                put(L + n, torch.zeros(H))
            if self.is_kda(i):
                h, pw = c["kda_heads"], c["kda_heads"] * c["kda_dim"]
                mat(L + "qkvgb", 4 * pw + h, H)
                mat(L + "f_a", c["kda_dim"], H)
                mat(L + "f_b", pw, c["kda_dim"], gain=.5)
                taps = torch.randn(3, pw, 4, generator=g) * .2
                taps[..., -1] += .7
                put(L + "taps", taps)
                put(L + "A_log", torch.rand(h, generator=g) * .5)
                put(L + "dt_bias", torch.rand(pw, generator=g) * 5 - 6)
                put(L + "o_norm", ones(c["kda_dim"]))
                mat(L + "o", H, pw, gain=.5)
            else:
                n, qk = c["mla_heads"], c["nope"] + c["rope"]
                mat(L + "q_a", c["q_rank"], H)
                put(L + "q_a_norm", ones(c["q_rank"]))
                mat(L + "q_b", n * qk, c["q_rank"])
                mat(L + "kv_a", c["kv_rank"] + c["rope"], H)
                put(L + "kv_a_norm", ones(c["kv_rank"]))
                mat(L + "kv_b", n * (c["nope"] + c["vdim"]), c["kv_rank"])
                mat(L + "g", n * c["vdim"], H)
                mat(L + "o", H, n * c["vdim"], gain=.5)
            if i == 0:
                mat(L + "gu", 2 * c["dense"], H)
                mat(L + "down", H, c["dense"], gain=.5)
            else:
                E, l, w, sw = c["experts"], c["latent"], c["inter"], c["inter"] * c["shared"]
                mat(L + "gate", E, H)
                self.register_buffer(f"bias{i}", torch.randn(E, generator=g) * 1e-3)  # equal biases could tie
                self.register_buffer(f"load{i}", torch.zeros(E))
                mat(L + "lat_down", l, H)
                put(L + "lat_norm", ones(l))
                mat(L + "lat_up", H, l, gain=.3)
                mat(L + "W13", E, l, 2 * w, fan=l)
                mat(L + "W2", E, w, l, fan=w)
                mat(L + "sgu", 2 * sw, H)
                mat(L + "sdown", H, sw, gain=.5)

    def is_kda(self, i):
        return not ((i + 1) % 4 == 0 or i + 1 == self.c["layers"])

    def g(self, name):
        return self.p[name.replace(".", "/")]

    def mix(self, name, v):
        w = self.g(name + "_norm") * self.g(name + "_proj")
        return mix_ref(w, *v) if self.reference else Mix.apply(w, *v)

    def rms(self, x, name, eps=EPS):
        return rms_ref(x, self.g(name), eps) if self.reference else RMS.apply(x, self.g(name), eps)

    def kda(self, L, x, lens):
        Y = F.linear(x, self.g(L + "qkvgb"))
        Z = F.linear(F.linear(x, self.g(L + "f_a")), self.g(L + "f_b"), self.g(L + "dt_bias"))
        f = kda_ref if self.reference else KDA.apply
        return F.linear(f(Y, Z, self.g(L + "taps"), self.g(L + "A_log").exp(), self.g(L + "o_norm"), lens), self.g(L + "o"))

    def mla(self, L, x, mask):
        c, (B, T, _) = self.c, x.shape
        n, no, vd = c["mla_heads"], c["nope"], c["vdim"]
        q = F.linear(self.rms(F.linear(x, self.g(L + "q_a")), L + "q_a_norm", MLA_EPS), self.g(L + "q_b")).view(B, T, n, -1)
        ckv = F.linear(x, self.g(L + "kv_a"))
        kv = F.linear(self.rms(ckv[..., :c["kv_rank"]], L + "kv_a_norm", MLA_EPS), self.g(L + "kv_b")).view(B, T, n, no + vd)
        key = torch.cat([kv[..., :no], ckv[..., None, c["kv_rank"]:].expand(B, T, n, c["rope"])], -1)
        s = q.transpose(1, 2) @ key.permute(0, 2, 3, 1) * (no + c["rope"]) ** -.5 + mask
        o = (torch.softmax(s, -1) @ kv[..., no:].transpose(1, 2)).transpose(1, 2).reshape(B, T, n * vd)
        return F.linear(o * torch.sigmoid(F.linear(x, self.g(L + "g"))), self.g(L + "o"))

    def ffn(self, i, x, alive):
        L, c = f"{i}.", self.c
        act = situ_ref if self.reference else SiTU.apply
        if i == 0:
            return F.linear(act(F.linear(x, self.g(L + "gu"))), self.g(L + "down"))
        flat = x.reshape(-1, x.shape[-1])
        logit = F.linear(flat, self.g(L + "gate"))
        s = torch.sigmoid(logit)
        with torch.no_grad():
            ids = torch.topk(s + getattr(self, f"bias{i}"), c["top_k"], dim=-1)[1]
            ids32 = torch.where(alive[:, None], ids, ids.new_full((), -1)).to(torch.int32).contiguous()
            self.trace[i] = ids32
        if self.local and self.training:
            # Locality: a token's mean score on the experts its predecessor used, above its mean over all experts, is
            # rewarded (up to a cap) so that neighbours reuse experts and an expert cache hits.  The square penalty on
            # the router logits keeps the sigmoids away from saturation (otherwise near-ties decide the routing).
            B, T, E = x.shape[0], x.shape[1], s.shape[-1]
            prev = torch.zeros_like(s).scatter_(1, ids, 1. / c["top_k"]).view(B, T, E)[:, :-1]
            sc, al = s.view(B, T, E)[:, 1:], alive.view(B, T)[:, 1:]
            share = (((sc * prev).sum(-1) - sc.mean(-1)) * al).sum() / al.sum().clamp(min=1)
            self.share[i] = float(share)
            if self.share[i] < self.local_cap:
                self.aux = self.aux - self.local * share
            self.aux = self.aux + self.logit_penalty * ((logit * logit).mean(-1) * alive).sum() / alive.sum()
            # Balance: scores cost what their expert is used above the mean, and earn what it is used below.
            load = getattr(self, f"load{i}")
            over = (load / load.mean().clamp(min=1)).clamp(max=10) - 1
            self.aux = self.aux + self.spread * ((s * over).mean(-1) * alive).sum() / alive.sum()
        w = s.gather(1, ids)
        w = w / (w.sum(-1, keepdim=True) + 1e-20)
        W13, W2 = self.g(L + "W13"), self.g(L + "W2")
        if self.quant:
            W13, W2 = FakeQuant.apply(W13), FakeQuant.apply(W2)
        f = experts_ref if self.reference else Experts.apply
        r = f(F.linear(flat, self.g(L + "lat_down")), ids32, w, W13, W2)
        r = F.linear(self.rms(r, L + "lat_norm"), self.g(L + "lat_up")).view(x.shape)
        return r + F.linear(act(F.linear(x, self.g(L + "sgu"))), self.g(L + "sdown"))

    def forward(self, ids, lens):
        """ids [B,T] (padded at the end), lens int32 [B] -> final normed hidden [B,T,H]."""
        T = ids.shape[1]
        mask = torch.full((T, T), -1e9).triu(1)
        alive = (torch.arange(T)[None] < lens[:, None]).reshape(-1)
        self.trace, self.aux = {}, 0.0
        p, blocks = F.embedding(ids, self.g("embed")), []
        for i in range(self.c["layers"]):
            L = f"{i}."
            u = self.mix(L + "self_attention_res", blocks + [p]) if blocks else p
            restart = i % self.c["res_block"] == 0
            if restart:
                blocks = blocks + [p]
            u = self.rms(u, L + "input_layernorm")
            a = self.kda(L, u, lens) if self.is_kda(i) else self.mla(L, u, mask)
            p = a if restart else p + a
            u = self.rms(self.mix(L + "mlp_res", blocks + [p]), L + "post_attention_layernorm")
            p = p + self.ffn(i, u, alive)
        return self.rms(self.mix("output_attn_res", blocks + [p]), "norm")

    @contextlib.contextmanager
    def as_exported(self):
        """Inside, the weights are those of the exported files; gradients still reach the full ones."""
        kept = {k: v.data for k, v in self.p.items() if "/W" not in k and not k.endswith(KEPT_F32)}
        for k, v in kept.items():
            self.p[k].data = v.bfloat16().float()
        quant, self.quant = self.quant, True
        try:
            yield
        finally:
            self.quant = quant
            for k, v in kept.items():
                self.p[k].data = v

    @torch.no_grad()
    def balance(self, rate):
        """Balancing without a loss: the selection bias of experts used more than twice the mean goes down, of those used
        less than half of it up, by how many times that is (its logarithm). Loads are averages over some 30 steps, since
        one step holds one kind of document. Steps of one size make experts swing between flooded and idle."""
        E = self.c["experts"]
        for i, ids in self.trace.items():
            n, load, bias = torch.bincount((ids.reshape(-1) + 1).long(), minlength=E + 1)[1:].float(), getattr(self, f"load{i}"), getattr(self, f"bias{i}")
            load.mul_(.967).add_(n)
            off = torch.log((load + 1) / (load.mean() + 1)).clamp(-2.5, 2.5)
            bias.sub_(rate * off.sign() * (off.abs() - math.log(2)).clamp(min=0))
            bias.sub_(bias.mean())


class AdamW:
    """AdamW with the gradient clipped to a norm, in one pass over each tensor (torch's takes ten)."""

    def __init__(self, m, decay, betas=(.9, .98), eps=1e-9, clip=1.0):
        # Matrices decay; gains, taps, decay parameters and score weights do not.
        self.of = [(v, decay if v.dim() > 1 and "taps" not in k else 0.0, torch.zeros_like(v), torch.zeros_like(v)) for k, v in m.p.items()]
        self.betas, self.eps, self.clip, self.steps = betas, eps, clip, 0

    @torch.no_grad()
    def step(self, rate):
        """Returns the norm of the gradient before it is clipped."""
        self.steps += 1
        LIB.square_sum.restype = ctypes.c_double
        used = [of for of in self.of if of[0].grad is not None]  # nothing comes before layer 0 that it could mix
        norm = math.sqrt(sum(LIB.square_sum(LG(p.numel()), P(p.grad)) for p, *_ in used))
        for p, decay, mean, square in used:
            LIB.adamw(LG(p.numel()), P(p), P(p.grad), P(mean), P(square), FL(min(1, self.clip / (norm + 1e-6))), FL(rate), FL(self.betas[0]),
                      FL(self.betas[1]), FL(self.eps), FL(decay), I(self.steps))
        return norm

    def state_dict(self):
        return {"steps": self.steps, "mean": [m for _, _, m, _ in self.of], "square": [s for _, _, _, s in self.of]}

    def load_state_dict(self, state):
        self.steps = state["steps"]
        for (_, _, mean, square), a, b in zip(self.of, state["mean"], state["square"]):
            mean.copy_(a)
            square.copy_(b)
