/* Training kernels (float32) for the three costly parts: KDA core, routed experts, SiTU-GLU.
 * Built on the fly by train.py:  cc -O3 -march=native -ffast-math -fopenmp -shared -fPIC
 * KDA head dimension is fixed to D = 32; expert widths are multiples of 32. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#define D 32
#define CONV 4
typedef float v16 __attribute__((vector_size(64), aligned(4)));

static inline float sig(float x) { return 1.0f / (1.0f + expf(-x)); }

/* ---------------- KDA: raw projections -> gated head outputs ----------------
 * Y [B,T,ld] columns: q P | k P | v P | gate P | beta h ; Z [B,T,P] decay logits incl. dt_bias
 * taps [3,P,4]; A [h] = exp(A_log); on [D]; out [B,T,P]; lens [B] */
typedef struct { float c[3][D], s[3][D], n[3][D], rq, rk, a[D], sg[D], beta, e[D], o[D]; } tok;

static void prep(tok *t, const float *Yb, const float *Zb, int time, int ld, int P, int h0, int h, const float *taps, float A, float lb)
{
    for (int x = 0; x < 3; x++) {
        float *c = t->c[x];
        for (int i = 0; i < D; i++) c[i] = 0;
        for (int j = 0; j < CONV; j++) {
            int tt = time - (CONV - 1) + j;
            if (tt < 0) continue;
            const float *r = Yb + (size_t)tt * ld + x * P + h0 * D, *w = taps + (x * P + h0 * D) * CONV;
            for (int i = 0; i < D; i++) c[i] += w[i * CONV + j] * r[i];
        }
        for (int i = 0; i < D; i++) t->s[x][i] = c[i] * sig(c[i]);
    }
    float nq = 0, nk = 0;
    for (int i = 0; i < D; i++) { nq += t->s[0][i] * t->s[0][i]; nk += t->s[1][i] * t->s[1][i]; }
    t->rq = 1.0f / sqrtf(nq + 1e-6f); t->rk = 1.0f / sqrtf(nk + 1e-6f);
    float sc = t->rq / sqrtf((float)D);
    for (int i = 0; i < D; i++) { t->n[0][i] = t->s[0][i] * sc; t->n[1][i] = t->s[1][i] * t->rk; t->n[2][i] = t->s[2][i]; }
    const float *z = Zb + (size_t)time * P + h0 * D;
    for (int i = 0; i < D; i++) { t->sg[i] = sig(A * z[i]); t->a[i] = expf(lb * t->sg[i]); }
    t->beta = sig(Yb[(size_t)time * ld + 4 * P + h0]);
}

static void advance(tok *t, const float *S0, float *S)
{
    float p[D];
    for (int j = 0; j < D; j++) p[j] = 0;
    for (int i = 0; i < D; i++) {
        float a = t->a[i], k = t->n[1][i];
        for (int j = 0; j < D; j++) { float s = a * S0[i * D + j]; S[i * D + j] = s; p[j] += k * s; }
    }
    for (int j = 0; j < D; j++) { t->e[j] = t->n[2][j] - p[j]; t->o[j] = 0; }
    for (int i = 0; i < D; i++) {
        float k = t->n[1][i] * t->beta, q = t->n[0][i];
        for (int j = 0; j < D; j++) { float s = S[i * D + j] + k * t->e[j]; S[i * D + j] = s; t->o[j] += q * s; }
    }
}

void kda_fwd(int B, int T, int h, int ld, float lb, float eps, const int *lens, const float *Y, const float *Z, const float *taps,
             const float *A, const float *on, float *out)
{
    int P = h * D;
#pragma omp parallel for collapse(2) schedule(dynamic, 4)
    for (int b = 0; b < B; b++)
        for (int g = 0; g < h; g++) {
            float S[2][D * D];
            memset(S[0], 0, sizeof S[0]);
            tok t;
            const float *Yb = Y + (size_t)b * T * ld, *Zb = Z + (size_t)b * T * P;
            for (int x = 0; x < T; x++) {
                float *o = out + ((size_t)b * T + x) * P + g * D;
                if (x >= lens[b]) { memset(o, 0, D * sizeof *o); continue; }
                prep(&t, Yb, Zb, x, ld, P, g, h, taps, A[g], lb);
                advance(&t, S[x & 1], S[1 - (x & 1)]);
                float m = 0;
                for (int j = 0; j < D; j++) m += t.o[j] * t.o[j];
                m = 1.0f / sqrtf(m / D + eps);
                const float *gt = Yb + (size_t)x * ld + 3 * P + g * D;
                for (int j = 0; j < D; j++) o[j] = t.o[j] * m * on[j] * sig(gt[j]);
            }
        }
}

/* dY must be zeroed by the caller; dtaps [B,3,P,4], dA [B,h], don [B,h,D] are per batch row (summed by the caller) */
void kda_bwd(int B, int T, int h, int ld, float lb, float eps, const int *lens, const float *Y, const float *Z, const float *taps,
             const float *A, const float *on, const float *dout, float *dY, float *dZ, float *dtaps, float *dA, float *don)
{
    int P = h * D;
#pragma omp parallel
    {
        float *SS = malloc((size_t)(T + 1) * D * D * sizeof(float));
        tok *tk = malloc((size_t)T * sizeof(tok));
#pragma omp for collapse(2) schedule(dynamic, 4)
        for (int b = 0; b < B; b++)
            for (int g = 0; g < h; g++) {
                const float *Yb = Y + (size_t)b * T * ld, *Zb = Z + (size_t)b * T * P;
                float *dYb = dY + (size_t)b * T * ld, *dZb = dZ + (size_t)b * T * P;
                float *dw = dtaps + ((size_t)b * 3 * P + g * D) * CONV, *dn = don + ((size_t)b * h + g) * D;
                float dS[D * D], accA = 0;
                int n = lens[b];
                memset(SS, 0, D * D * sizeof(float));
                memset(dS, 0, sizeof dS);
                memset(dn, 0, D * sizeof(float));
                for (int x = 0; x < 3; x++) memset(dw + (size_t)x * P * CONV, 0, D * CONV * sizeof(float));
                for (int x = 0; x < n; x++) {
                    prep(&tk[x], Yb, Zb, x, ld, P, g, h, taps, A[g], lb);
                    advance(&tk[x], SS + (size_t)x * D * D, SS + (size_t)(x + 1) * D * D);
                }
                for (int x = n; x < T; x++) memset(dZb + (size_t)x * P + g * D, 0, D * sizeof(float));
                for (int x = n - 1; x >= 0; x--) {
                    tok *t = &tk[x];
                    const float *S = SS + (size_t)(x + 1) * D * D, *S0 = SS + (size_t)x * D * D;
                    const float *gt = Yb + (size_t)x * ld + 3 * P + g * D, *dO = dout + ((size_t)b * T + x) * P + g * D;
                    float *dgt = dYb + (size_t)x * ld + 3 * P + g * D;
                    float m = 0, dot = 0, dyn[D], doo[D], dq[D], dk[D], du[D], de[D], dv[D];
                    for (int j = 0; j < D; j++) m += t->o[j] * t->o[j];
                    m = 1.0f / sqrtf(m / D + eps);
                    for (int j = 0; j < D; j++) {
                        float s = sig(gt[j]), nn = t->o[j] * m;
                        dgt[j] = dO[j] * nn * on[j] * s * (1 - s);
                        dn[j] += dO[j] * nn * s;
                        dyn[j] = dO[j] * on[j] * s;
                        dot += dyn[j] * nn;
                    }
                    for (int j = 0; j < D; j++) doo[j] = m * (dyn[j] - t->o[j] * m * dot / D);
                    for (int j = 0; j < D; j++) du[j] = 0;
                    float beta = t->beta, db = 0;
                    for (int i = 0; i < D; i++) {
                        float q = t->n[0][i], k = t->n[1][i], aq = 0, ak = 0;
                        for (int j = 0; j < D; j++) {
                            aq += S[i * D + j] * doo[j];
                            float s = dS[i * D + j] + q * doo[j];
                            dS[i * D + j] = s;
                            ak += s * t->e[j];
                            du[j] += k * s;
                        }
                        dq[i] = aq;
                        dk[i] = ak * beta;
                    }
                    for (int j = 0; j < D; j++) { db += du[j] * t->e[j]; de[j] = beta * du[j]; dv[j] = de[j]; }
                    float *dz = dZb + (size_t)x * P + g * D;
                    const float *z = Zb + (size_t)x * P + g * D;
                    for (int i = 0; i < D; i++) {
                        float k = t->n[1][i], a = t->a[i], sk = 0, da = 0;
                        for (int j = 0; j < D; j++) {
                            float s0 = S0[i * D + j], s = dS[i * D + j] - k * de[j];
                            sk += s0 * de[j];
                            da += s * s0;
                            dS[i * D + j] = a * s;
                        }
                        dk[i] -= a * sk;
                        float dgl = da * a * lb * t->sg[i] * (1 - t->sg[i]);
                        dz[i] = dgl * A[g];
                        accA += dgl * z[i];
                    }
                    dYb[(size_t)x * ld + 4 * P + g] = db * beta * (1 - beta);
                    /* through l2, silu, conv */
                    float ds[3][D], pq = 0, pk = 0, sc = t->rq / sqrtf((float)D);
                    for (int i = 0; i < D; i++) { pq += dq[i] * t->s[0][i]; pk += dk[i] * t->s[1][i]; }
                    for (int i = 0; i < D; i++) {
                        ds[0][i] = sc * (dq[i] - t->s[0][i] * pq * t->rq * t->rq);
                        ds[1][i] = t->rk * (dk[i] - t->s[1][i] * pk * t->rk * t->rk);
                        ds[2][i] = dv[i];
                    }
                    for (int y = 0; y < 3; y++) {
                        float dc[D];
                        for (int i = 0; i < D; i++) { float s = sig(t->c[y][i]); dc[i] = ds[y][i] * s * (1 + t->c[y][i] * (1 - s)); }
                        for (int j = 0; j < CONV; j++) {
                            int tt = x - (CONV - 1) + j;
                            if (tt < 0) continue;
                            const float *r = Yb + (size_t)tt * ld + y * P + g * D, *w = taps + (y * P + g * D) * CONV;
                            float *dr = dYb + (size_t)tt * ld + y * P + g * D, *dwy = dw + (size_t)y * P * CONV;
                            for (int i = 0; i < D; i++) { dr[i] += w[i * CONV + j] * dc[i]; dwy[i * CONV + j] += r[i] * dc[i]; }
                        }
                    }
                }
                dA[b * h + g] = accA;
            }
        free(SS);
        free(tk);
    }
}

/* ---------------- SiTU-GLU ---------------- */
static inline float tanh_(float x) { float e = expf(-2 * fabsf(x)), r = (1 - e) / (1 + e); return x < 0 ? -r : r; }
static inline void situ1(float g, float u, float *h)
{ *h = 4 * tanh_(g * .25f) * sig(g) * 25 * tanh_(u * .04f); }
static inline void situ1b(float g, float u, float dh, float *dg, float *du)
{
    float t = tanh_(g * .25f), s = sig(g), w = tanh_(u * .04f);
    *dg = dh * 25 * w * ((1 - t * t) * s + 4 * t * s * (1 - s));
    *du = dh * 4 * t * s * (1 - w * w);
}
void situ_fwd(long n, int I, const float *gu, float *h)      /* gu [n,2I] -> h [n,I] */
{
#pragma omp parallel for
    for (long r = 0; r < n; r++)
        for (int i = 0; i < I; i++) situ1(gu[r * 2 * I + i], gu[r * 2 * I + I + i], &h[r * I + i]);
}
void situ_bwd(long n, int I, const float *gu, const float *dh, float *dgu)
{
#pragma omp parallel for
    for (long r = 0; r < n; r++)
        for (int i = 0; i < I; i++)
            situ1b(gu[r * 2 * I + i], gu[r * 2 * I + I + i], dh[r * I + i], &dgu[r * 2 * I + i], &dgu[r * 2 * I + I + i]);
}

/* ---------------- routed experts ---------------- */
/* C[n,m] (+)= sum_p A[i*sa + p*sb] B[p*ldb + j];  m multiple of 32 */
static void gemm(int n, int m, int k, const float *A, int sa, int sb, const float *B, int ldb, float *C, int ldc)
{
    for (int j = 0; j < m; j += 32) {
        int i = 0;
        for (; i + 6 <= n; i += 6) {
            v16 c[6][2];
            memset(c, 0, sizeof c);
            for (int p = 0; p < k; p++) {
                v16 b0 = *(const v16 *)(B + (size_t)p * ldb + j), b1 = *(const v16 *)(B + (size_t)p * ldb + j + 16);
                for (int r = 0; r < 6; r++) { float a = A[(size_t)(i + r) * sa + (size_t)p * sb]; c[r][0] += a * b0; c[r][1] += a * b1; }
            }
            for (int r = 0; r < 6; r++) { *(v16 *)(C + (size_t)(i + r) * ldc + j) = c[r][0]; *(v16 *)(C + (size_t)(i + r) * ldc + j + 16) = c[r][1]; }
        }
        for (; i < n; i++) {
            v16 c0 = {0}, c1 = {0};
            for (int p = 0; p < k; p++) {
                float a = A[(size_t)i * sa + (size_t)p * sb];
                c0 += a * *(const v16 *)(B + (size_t)p * ldb + j);
                c1 += a * *(const v16 *)(B + (size_t)p * ldb + j + 16);
            }
            *(v16 *)(C + (size_t)i * ldc + j) = c0;
            *(v16 *)(C + (size_t)i * ldc + j + 16) = c1;
        }
    }
}
static void transpose(int r, int c, const float *A, float *B) { for (int i = 0; i < r; i++) for (int j = 0; j < c; j++) B[j * r + i] = A[i * c + j]; }

/* slots sorted by expert: slot s belongs to tok[s] / weight index src[s] = token*K + j; off [E+1] */
static void sort_slots(int N, int K, int E, const int *ids, int *src, int *off)
{
    memset(off, 0, (E + 1) * sizeof(int));
    for (int i = 0; i < N * K; i++) if (ids[i] >= 0) off[ids[i] + 1]++;
    for (int e = 0; e < E; e++) off[e + 1] += off[e];
    int *p = malloc(E * sizeof(int));
    memcpy(p, off, E * sizeof(int));
    for (int i = 0; i < N * K; i++) if (ids[i] >= 0) src[p[ids[i]]++] = i;
    free(p);
}
/* W13 [E,L,2I], W2 [E,I,L]; saved: src, off, X [S,L], GU [S,2I], H [S,I], Zs [N*K,L] (indexed by token*K+j) */
void moe_fwd(int N, int K, int E, int L, int I, const float *x, const int *ids, const float *w, const float *W13, const float *W2,
             int *src, int *off, float *X, float *GU, float *H, float *Zs, float *y)
{
    sort_slots(N, K, E, ids, src, off);
#pragma omp parallel
    {
        float *Z = malloc((size_t)N * L * sizeof(float));
#pragma omp for schedule(dynamic, 1)
        for (int e = 0; e < E; e++) {
            int a = off[e], n = off[e + 1] - a;
            for (int s = 0; s < n; s++) memcpy(X + (size_t)(a + s) * L, x + (size_t)(src[a + s] / K) * L, L * sizeof(float));
            gemm(n, 2 * I, L, X + (size_t)a * L, L, 1, W13 + (size_t)e * L * 2 * I, 2 * I, GU + (size_t)a * 2 * I, 2 * I);
            for (int s = a; s < a + n; s++)
                for (int i = 0; i < I; i++) situ1(GU[(size_t)s * 2 * I + i], GU[(size_t)s * 2 * I + I + i], &H[(size_t)s * I + i]);
            gemm(n, L, I, H + (size_t)a * I, I, 1, W2 + (size_t)e * I * L, L, Z, L);
            for (int s = 0; s < n; s++) memcpy(Zs + (size_t)src[a + s] * L, Z + (size_t)s * L, L * sizeof(float));
        }
        free(Z);
#pragma omp for
        for (int i = 0; i < N; i++) {
            float *o = y + (size_t)i * L;
            memset(o, 0, L * sizeof(float));
            for (int k = 0; k < K; k++) {
                if (ids[i * K + k] < 0) continue;
                float ww = w[i * K + k];
                for (int j = 0; j < L; j++) o[j] += ww * Zs[(size_t)(i * K + k) * L + j];
            }
        }
    }
}
void moe_bwd(int N, int K, int E, int L, int I, const int *ids, const float *w, const float *W13, const float *W2, const int *src, const int *off,
             const float *X, const float *GU, const float *H, const float *Zs, const float *dy, float *dx, float *dw, float *dW13, float *dW2)
{
    float *dXs = malloc((size_t)N * K * L * sizeof(float));
#pragma omp parallel
    {
        float *dZ = malloc((size_t)N * L * sizeof(float)), *dH = malloc((size_t)N * I * sizeof(float)), *dGU = malloc((size_t)N * 2 * I * sizeof(float));
        float *dX = malloc((size_t)N * L * sizeof(float)), *Wt = malloc((size_t)2 * I * L * sizeof(float));
#pragma omp for schedule(dynamic, 1)
        for (int e = 0; e < E; e++) {
            int a = off[e], n = off[e + 1] - a;
            for (int s = 0; s < n; s++) {
                const float *d = dy + (size_t)(src[a + s] / K) * L;
                float ww = w[src[a + s]];
                for (int j = 0; j < L; j++) dZ[(size_t)s * L + j] = ww * d[j];
            }
            gemm(I, L, n, H + (size_t)a * I, 1, I, dZ, L, dW2 + (size_t)e * I * L, L);
            transpose(I, L, W2 + (size_t)e * I * L, Wt);
            gemm(n, I, L, dZ, L, 1, Wt, I, dH, I);
            for (int s = 0; s < n; s++)
                for (int i = 0; i < I; i++)
                    situ1b(GU[(size_t)(a + s) * 2 * I + i], GU[(size_t)(a + s) * 2 * I + I + i], dH[(size_t)s * I + i],
                           &dGU[(size_t)s * 2 * I + i], &dGU[(size_t)s * 2 * I + I + i]);
            gemm(L, 2 * I, n, X + (size_t)a * L, 1, L, dGU, 2 * I, dW13 + (size_t)e * L * 2 * I, 2 * I);
            transpose(L, 2 * I, W13 + (size_t)e * L * 2 * I, Wt);
            gemm(n, L, 2 * I, dGU, 2 * I, 1, Wt, L, dX, L);
            for (int s = 0; s < n; s++) memcpy(dXs + (size_t)src[a + s] * L, dX + (size_t)s * L, L * sizeof(float));
        }
        free(dZ); free(dH); free(dGU); free(dX); free(Wt);
#pragma omp for
        for (int i = 0; i < N; i++) {
            float *o = dx + (size_t)i * L;
            const float *d = dy + (size_t)i * L;
            memset(o, 0, L * sizeof(float));
            for (int k = 0; k < K; k++) {
                size_t r = (size_t)i * K + k;
                float s = 0;
                if (ids[r] >= 0)
                    for (int j = 0; j < L; j++) { o[j] += dXs[r * L + j]; s += d[j] * Zs[r * L + j]; }
                dw[r] = s;
            }
        }
    }
    free(dXs);
}

/* ---------------- attention residual mix over m rows of length H ----------------
 * v: m pointers to [N,H]; w [H] = norm weight * proj; a [N,m] out (softmax), r [N,m] out (1/rms), y [N,H] */
void mix_fwd(long N, int m, int H, float eps, const float *const *v, const float *w, float *a, float *r, float *y)
{
#pragma omp parallel for
    for (long t = 0; t < N; t++) {
        float s[16], mx = -1e30f, z = 0;
        for (int b = 0; b < m; b++) {
            const float *x = v[b] + t * H;
            float q = 0, d = 0;
            for (int i = 0; i < H; i++) { q += x[i] * x[i]; d += x[i] * w[i]; }
            r[t * m + b] = 1.0f / sqrtf(q / H + eps);
            s[b] = d * r[t * m + b];
            if (s[b] > mx) mx = s[b];
        }
        for (int b = 0; b < m; b++) { s[b] = expf(s[b] - mx); z += s[b]; }
        float *o = y + t * H;
        memset(o, 0, H * sizeof(float));
        for (int b = 0; b < m; b++) {
            const float *x = v[b] + t * H;
            float aa = a[t * m + b] = s[b] / z;
            for (int i = 0; i < H; i++) o[i] += aa * x[i];
        }
    }
}
/* dw is [threads<=64, H] zeroed by caller; dv: m pointers */
#include <omp.h>
void mix_bwd(long N, int m, int H, const float *const *v, const float *w, const float *a, const float *r, const float *dy, float *const *dv, float *dw)
{
#pragma omp parallel
    {
        float *dwt = dw + (size_t)omp_get_thread_num() * H;
#pragma omp for
        for (long t = 0; t < N; t++) {
            const float *d = dy + t * H;
            float da[16], tot = 0;
            for (int b = 0; b < m; b++) {
                const float *x = v[b] + t * H;
                float q = 0;
                for (int i = 0; i < H; i++) q += d[i] * x[i];
                da[b] = q;
                tot += q * a[t * m + b];
            }
            for (int b = 0; b < m; b++) {
                const float *x = v[b] + t * H;
                float *o = dv[b] + t * H, aa = a[t * m + b], rr = r[t * m + b], ds = aa * (da[b] - tot), dt = 0;
                for (int i = 0; i < H; i++) dt += x[i] * w[i];
                float c = ds * rr, e = ds * dt * rr * rr * rr / H;
                for (int i = 0; i < H; i++) { o[i] = aa * d[i] + c * w[i] - e * x[i]; dwt[i] += c * x[i]; }
            }
        }
    }
}
/* RMS norm */
void rms_fwd(long N, int H, float eps, const float *x, const float *w, float *y)
{
#pragma omp parallel for
    for (long t = 0; t < N; t++) {
        float q = 0;
        for (int i = 0; i < H; i++) q += x[t * H + i] * x[t * H + i];
        q = 1.0f / sqrtf(q / H + eps);
        for (int i = 0; i < H; i++) y[t * H + i] = x[t * H + i] * q * w[i];
    }
}
void rms_bwd(long N, int H, float eps, const float *x, const float *w, const float *dy, float *dx, float *dw)
{
#pragma omp parallel
    {
        float *dwt = dw + (size_t)omp_get_thread_num() * H;
#pragma omp for
        for (long t = 0; t < N; t++) {
            const float *X = x + t * H, *d = dy + t * H;
            float q = 0, s = 0;
            for (int i = 0; i < H; i++) { q += X[i] * X[i]; s += d[i] * w[i] * X[i]; }
            q = 1.0f / sqrtf(q / H + eps);
            float e = s * q * q * q / H;
            for (int i = 0; i < H; i++) { dx[t * H + i] = d[i] * w[i] * q - e * X[i]; dwt[i] += d[i] * X[i] * q; }
        }
    }
}
/* MXFP4 round trip: W [E,R,C], groups of 32 consecutive r (the file's column direction) */
void fakequant(int E, int R, int C, const float *W, float *out)
{
#pragma omp parallel for collapse(2)
    for (int e = 0; e < E; e++)
        for (int g = 0; g < R; g += 32) {
            const float *w = W + ((size_t)e * R + g) * C;
            float *o = out + ((size_t)e * R + g) * C;
            for (int c = 0; c < C; c++) {
                float m = 0;
                for (int r = 0; r < 32; r++) { float a = fabsf(w[r * C + c]); if (a > m) m = a; }
                union { float f; unsigned u; } b;
                b.f = m;
                int ex = (int)(b.u >> 23) - 127 - 2;                 /* floor(log2 m) - 2 */
                if (m < 1e-30f) ex = 0;
                b.u = (unsigned)(ex + 127) << 23;
                float s = b.f, inv = 1.0f / s;
                for (int r = 0; r < 32; r++) {
                    float x = w[r * C + c], a = fabsf(x) * inv;
                    float q = a > 2.5f ? (a > 5.0f ? 6.0f : a > 3.5f ? 4.0f : 3.0f)
                                       : (a > 1.75f ? 2.0f : a > 1.25f ? 1.5f : a > 0.75f ? 1.0f : a > 0.25f ? 0.5f : 0.0f);
                    o[r * C + c] = x < 0 ? -q * s : q * s;
                }
            }
        }
}
/* ---------------- AdamW ---------------- */
/* The squares of a gradient, summed in fixed shares, for clipping. */
double square_sum(long n, const float *g)
{
    enum { SHARES = 64 };
    double part[SHARES];
#pragma omp parallel for
    for (int s = 0; s < SHARES; s++) {
        double sum = 0;
        for (long i = n * s / SHARES; i < n * (s + 1) / SHARES; i++) sum += (double)g[i] * g[i];
        part[s] = sum;
    }
    double sum = 0;
    for (int s = 0; s < SHARES; s++) sum += part[s];
    return sum;
}
/* One pass over a tensor: p, its gradient g (times clip), the running means m and v. */
void adamw(long n, float *p, const float *g, float *m, float *v, float clip, float lr, float b1, float b2, float eps, float decay, int step)
{
    float c1 = 1 - powf(b1, step), c2 = 1 - powf(b2, step), keep = 1 - lr * decay;
#pragma omp parallel for
    for (long i = 0; i < n; i++) {
        float d = g[i] * clip;
        m[i] = b1 * m[i] + (1 - b1) * d;
        v[i] = b2 * v[i] + (1 - b2) * d * d;
        p[i] = p[i] * keep - lr * (m[i] / c1) / (sqrtf(v[i] / c2) + eps);
    }
}
