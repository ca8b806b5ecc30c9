// A minibatch of documents with a mean-field approximation of discrete layers, and the words' weights.
//
// Defined when this is compiled: DRAWS, the draws of a step.
// Rows of latents have the layers one after another, each padded to a multiple of 16, as on the host.

typedef unsigned int u32;
typedef unsigned long long u64;

#define TERM_RATE_MIN 1e-12f
#define RATE_MIN 1e-4f
#define SHARE_MIN 1e-6f
#define LARGEST 3e38f
#define FACTORS 4
#define SMALL 40.0f
#define PART 32.0f
#define VALUES 160
#define NONE 1e-9f
#define MEAN_MAX 1e6f
#define STEP_MAX 0.5f
#define FAR 12.0f
#define STIFF (1.0f / 3.0f)
// Statistics are summed as whole multiples of this, in any order with the same result.
#define WHOLE 4294967296.0

struct Layer {
    int width;
    int first;
    int is_binary;
    // Where the weights of its parents begin, a row for each, and then the intercepts.
    int link;
};

__device__ __forceinline__ float softplus(float a) {
    return fmaxf(a, 0.0f) + log1pf(__expf(-fabsf(a)));
}

__device__ __forceinline__ float sigmoid(float a) {
    float e = __expf(-fabsf(a));
    return (a >= 0.0f ? 1.0f : e) / (1.0f + e);
}

// λ of the mean softplus(λ) + RATE_MIN.
__device__ __forceinline__ float parameter(float mean) {
    float x = fmaxf(mean - RATE_MIN, 6.2e-6f);
    return x < 0.01f ? logf(x + 0.5f * x * x) : x + logf(1.0f - expf(-x));
}

// Philox 4x32-10 (Salmon, Moraes, Dror and Shaw, 2011).
__device__ __forceinline__ uint4 philox(uint4 counter, uint2 key) {
    for (int round = 0; round < 10; round++) {
        u32 high_x = __umulhi(0xD2511F53u, counter.x), low_x = 0xD2511F53u * counter.x;
        u32 high_z = __umulhi(0xCD9E8D57u, counter.z), low_z = 0xCD9E8D57u * counter.z;
        counter = make_uint4(high_z ^ counter.y ^ key.x, low_z, high_x ^ counter.w ^ key.y, low_x);
        key.x += 0x9E3779B9u;
        key.y += 0xBB67AE85u;
    }
    return counter;
}

__device__ __forceinline__ float uniform(u32 bits) {
    return (float)(bits >> 8) * (1.0f / 16777216.0f);
}

// Poisson counts with a mean below SMALL for these uniform numbers, by one inversion over the values, given the probability of none.
template <int LEN>
__device__ __forceinline__ void small_counts(float mean, float none, const float *u, float *counts) {
    float p = none, reached = p;
    #pragma unroll
    for (int q = 0; q < LEN; q++) counts[q] = 0.0f;
    for (int value = 1; value < VALUES; value++) {
        bool is_any = false;
        #pragma unroll
        for (int q = 0; q < LEN; q++) {
            const bool is_above = u[q] > reached;
            counts[q] += is_above ? 1.0f : 0.0f;
            is_any |= is_above;
        }
        p *= __fdividef(mean, (float)value);
        reached += p;
        // Rounding may leave the sum of all probabilities below u; then this is the last value with positive probability.
        if (!is_any || (p <= NONE && mean <= (float)(value + 1))) break;
    }
}

// A larger one is a sum of smaller ones.
__device__ float large_count(float mean, uint4 counter, uint2 key) {
    mean = fminf(mean, MEAN_MAX);
    int parts = (int)ceilf(mean / PART);
    float count = 0.0f;
    for (int part = 0; part < parts; part++) {
        counter.w += 1u << 16;
        const float own = mean / (float)parts, u = uniform(philox(counter, key).x);
        float more;
        small_counts<1>(own, __expf(-own), &u, &more);
        count += more;
    }
    return count;
}

// The expected log density of a child with this mean given its activation, but for terms without it.
__device__ __forceinline__ float log_density(int is_binary, float mean, float a) {
    float soft = softplus(a);
    if (is_binary) return mean * a - soft;
    float rate = soft + RATE_MIN;
    return mean * __logf(rate) - rate;
}

__device__ __forceinline__ float over_warp(float x) {
    for (int away = 16; away > 0; away >>= 1) x += __shfl_xor_sync(0xffffffffu, x, away);
    return x;
}

// The sums over a warp of one number for each draw: that of draw q ends in the lanes whose number has q in its lowest bits.
__device__ __forceinline__ float draws_over_warp(float *x, int lane) {
    #pragma unroll
    for (int away = DRAWS / 2; away > 0; away >>= 1) {
        const bool is_upper = lane & away;
        #pragma unroll
        for (int q = 0; q < away; q++) {
            const float sent = is_upper ? x[q] : x[q + away], kept = is_upper ? x[q + away] : x[q];
            x[q] = kept + __shfl_xor_sync(0xffffffffu, sent, away);
        }
    }
    float sum = x[0];
    #pragma unroll
    for (int away = DRAWS; away < 32; away <<= 1) sum += __shfl_xor_sync(0xffffffffu, sum, away);
    return sum;
}

// Adds the logarithms of products to sums. A product that overflows is taken for the largest number.
__device__ __forceinline__ void flush(float *product, float *sum) {
    #pragma unroll
    for (int q = 0; q < DRAWS; q++) {
        sum[q] += __logf(fminf(product[q], LARGEST));
        product[q] = 1.0f;
    }
}

// Multiplies the factors 1 ± w/R of one word into the products of a latent, one for each draw.
template <bool IS_BINARY>
__device__ __forceinline__ void multiply(
    float w, int times, const float *inverse, const float *sign, float *product, float *sum, int &factors)
{
    // Logarithms are expensive: the factors of small counts are multiplied.
    if (factors + times > FACTORS) {
        flush(product, sum);
        factors = 0;
    }
    float before[DRAWS], share[DRAWS];
    #pragma unroll
    for (int q = 0; q < DRAWS; q++) {
        share[q] = w * inverse[q];
        if (IS_BINARY) share[q] = fmaxf(sign[q] * share[q], SHARE_MIN - 1.0f);
        before[q] = product[q];
        product[q] += product[q] * share[q];
    }
    if (times == 1) {
        factors++;
        return;
    }
    if (times <= FACTORS) {
        factors += times;
        for (int time = 1; time < times; time++) {
            #pragma unroll
            for (int q = 0; q < DRAWS; q++) product[q] += product[q] * share[q];
        }
        return;
    }
    #pragma unroll
    for (int q = 0; q < DRAWS; q++) {
        product[q] = before[q];
        sum[q] += (float)times * __logf(fminf(1.0f + share[q], LARGEST));
    }
}

// Words whose rates are in shared memory at a time, and those whose weights are read together.
#define TILE 64
#define TOGETHER 4

// The same for the words of a tile.
template <bool IS_BINARY>
__device__ __forceinline__ void multiply_tile(
    int words, const u32 *terms, const int *times, const float *inverse, const float *weights, int lowest,
    const float *sign, float *product, float *sum, int &factors)
{
    for (int first = 0; first < words; first += TOGETHER) {
        float w[TOGETHER];
        #pragma unroll
        for (int t = 0; t < TOGETHER; t++) w[t] = weights[(u64)terms[min(first + t, words - 1)] * lowest];
        #pragma unroll
        for (int t = 0; t < TOGETHER; t++) {
            if (first + t >= words) break;
            multiply<IS_BINARY>(w[t], times[first + t], inverse + (first + t) * DRAWS, sign, product, sum, factors);
        }
    }
}

// The steps of the documents of a minibatch, a block for each. A block has at least as many threads as the lowest layer has latents.
extern "C" __global__ void documents(
    const Layer *layers, int layers_len, int row, int lowest,
    const u32 *batch, const u64 *places, const u64 *starts, const u32 *terms, const float *counts,
    const float *weights, const float *background, const float *sums, const float *links,
    float *lambda, u64 seed, u64 step, int local_steps, float size,
    float *z_out, float *d_above_out, float *inverse_out, float *rows_out, float *values)
{
    // Draws are next to each other, for each latent and each word.
    extern __shared__ float4 aligned[];
    float *z = (float *)aligned, *above = z + DRAWS * row, *inverse = above + DRAWS * row;
    float *at = inverse + DRAWS * TILE, *mean = at + row, *slope = mean + row, *signal = slope + row;
    float *partial = signal + row;
    int *tile_times = (int *)(partial + 32);
    u32 *tile_terms = (u32 *)(tile_times + TILE);
    const int thread = threadIdx.x, threads = blockDim.x, lane = thread & 31, warp = thread >> 5, warps = threads >> 5;
    const u64 document = batch[blockIdx.x], first = starts[document];
    const int words = (int)(starts[document + 1] - first);
    terms += first;
    counts += first;
    inverse_out += places[blockIdx.x] * DRAWS;
    lambda += document * row;
    const uint2 key = make_uint2((u32)seed ^ (u32)(step >> 32), (u32)(seed >> 32) ^ (u32)step);
    for (int i = thread; i < row; i += threads) at[i] = lambda[i];
    __syncthreads();

    for (int local = 0; local < local_steps; local++) {
        const bool is_last = local + 1 == local_steps;
        float value = 0.0f;

        // Means and draws.
        for (int l = 0; l < layers_len; l++) {
            const Layer layer = layers[l];
            for (int k = thread; k < layer.width; k += threads) {
                const int i = layer.first + k;
                const float sig = sigmoid(at[i]), m = layer.is_binary ? sig : softplus(at[i]) + RATE_MIN;
                mean[i] = m;
                slope[i] = layer.is_binary ? sig * (1.0f - sig) : sig;
                signal[i] = 0.0f;
                float u[(DRAWS + 3) / 4 * 4], drawn[DRAWS];
                uint4 counter = make_uint4((u32)i, (u32)document, (u32)(document >> 32) ^ ((u32)local << 8), 0);
                #pragma unroll
                for (int q = 0; q < DRAWS; q += 4) {
                    counter.w = (u32)q;
                    const uint4 bits = philox(counter, key);
                    u[q] = uniform(bits.x);
                    u[q + 1] = uniform(bits.y);
                    u[q + 2] = uniform(bits.z);
                    u[q + 3] = uniform(bits.w);
                }
                if (layer.is_binary) {
                    #pragma unroll
                    for (int q = 0; q < DRAWS; q++) drawn[q] = u[q] > 1.0f - m ? 1.0f : 0.0f;
                } else if (m < SMALL) {
                    small_counts<DRAWS>(m, __expf(-m), u, drawn);
                } else {
                    for (int q = 0; q < DRAWS; q++) {
                        counter.w = (u32)q;
                        drawn[q] = large_count(m, counter, key);
                    }
                }
                #pragma unroll
                for (int q = 0; q < DRAWS; q++) z[i * DRAWS + q] = drawn[q];
            }
        }

        // The words, some at a time: the rate of each in each draw, and then how their density changes if a latent of the lowest layer
        // goes up by one, or from 0 to 1.
        const int width = layers[0].width;
        const bool is_binary = layers[0].is_binary, is_own = thread < width;
        float sum[DRAWS], product[DRAWS], sign[DRAWS];
        int factors = 0;
        #pragma unroll
        for (int q = 0; q < DRAWS; q++) {
            sum[q] = 0.0f;
            product[q] = 1.0f;
            sign[q] = is_own && is_binary && z[thread * DRAWS + q] > 0.5f ? -1.0f : 1.0f;
        }
        for (int begin = 0; begin < words; begin += TILE) {
            const int len = min(words - begin, TILE);
            __syncthreads();
            for (int word = warp; word < len; word += warps) {
                const u32 term = terms[begin + word];
                const float x = counts[begin + word];
                const float *own = weights + (u64)term * lowest;
                float rates[DRAWS];
                #pragma unroll
                for (int q = 0; q < DRAWS; q++) rates[q] = 0.0f;
                #pragma unroll 4
                for (int k = lane; k < width; k += 32) {
                    const float w = own[k];
                    #pragma unroll
                    for (int q = 0; q < DRAWS; q++) rates[q] += w * z[k * DRAWS + q];
                }
                const float rate = fmaxf(draws_over_warp(rates, lane) + background[term], TERM_RATE_MIN);
                const float reciprocal = __fdividef(1.0f, rate);
                if (lane < DRAWS) {
                    inverse[word * DRAWS + lane] = reciprocal;
                    if (is_last) {
                        inverse_out[(begin + word) * DRAWS + lane] = reciprocal;
                        value += x * __logf(rate);
                    }
                }
                if (lane == 0) {
                    tile_terms[word] = term;
                    tile_times[word] = (int)x;
                }
            }
            __syncthreads();
            if (is_own && is_binary) {
                multiply_tile<true>(len, tile_terms, tile_times, inverse, weights + thread, lowest, sign, product, sum, factors);
            } else if (is_own) {
                multiply_tile<false>(len, tile_terms, tile_times, inverse, weights + thread, lowest, sign, product, sum, factors);
            }
        }
        if (is_own) {
            float total = 0.0f;
            flush(product, sum);
            #pragma unroll
            for (int q = 0; q < DRAWS; q++) total += sign[q] * sum[q];
            signal[thread] = total / DRAWS - sums[thread];
            if (is_last) value -= DRAWS * mean[thread] * sums[thread];
        }

        // Each layer given the one above.
        for (int l = 0; l < layers_len; l++) {
            const Layer layer = layers[l];
            const int parents = l + 1 < layers_len ? layers[l + 1].width : 0, up = l + 1 < layers_len ? layers[l + 1].first : 0;
            const int padded = (layer.width + 15) / 16 * 16;
            // Without parents all draws have the same activations.
            const int distinct = parents > 0 ? DRAWS : 1;
            const float *rows = links + layer.link, *bias = rows + (u64)parents * padded;
            __syncthreads();
            for (int j = thread; j < layer.width; j += threads) {
                const int i = layer.first + j;
                const float m = mean[i];
                float changes = 0.0f, slopes = 0.0f;
                const float log_mean = logf(fmaxf(m, 1e-30f));
                const float entropy = layer.is_binary ? softplus(at[i]) - m * at[i] : m - m * log_mean;
                for (int q = 0; q < distinct; q++) {
                    float a = bias[j];
                    for (int k = 0; k < parents; k++) a += rows[(u64)k * padded + j] * z[(up + k) * DRAWS + q];
                    above[i * DRAWS + q] = a;
                    const float soft = softplus(a), sig = sigmoid(a), rate = soft + RATE_MIN;
                    float expected, along;
                    if (layer.is_binary) {
                        expected = m * a - soft;
                        along = m - sig;
                        changes += a - at[i];
                    } else {
                        const float log_rate = logf(rate);
                        expected = m * log_rate - rate;
                        along = sig * (m / rate - 1.0f);
                        changes += log_rate - log_mean;
                    }
                    if (is_last) value += (expected + entropy) * (DRAWS / distinct);
                    slopes += along;
                    if (is_last && parents > 0) d_above_out[((u64)blockIdx.x * DRAWS + q) * row + i] = along;
                }
                signal[i] += changes / distinct;
                if (is_last) rows_out[(u64)blockIdx.x * (lowest + row) + lowest + i] = slopes / distinct;
            }
            __syncthreads();
            for (int k = warp; k < parents; k += warps) {
                float total = 0.0f;
                for (int q = 0; q < DRAWS; q++) {
                    const float turn = layers[l + 1].is_binary && z[(up + k) * DRAWS + q] > 0.5f ? -1.0f : 1.0f;
                    float change = 0.0f;
                    for (int j = lane; j < layer.width; j += 32) {
                        const int i = layer.first + j;
                        const float a = above[i * DRAWS + q], then = a + turn * rows[(u64)k * padded + j];
                        change += log_density(layer.is_binary, mean[i], then) - log_density(layer.is_binary, mean[i], a);
                    }
                    total += turn * over_warp(change);
                }
                if (lane == 0) signal[up + k] += total / DRAWS;
            }
        }
        __syncthreads();

        // What the weights need of the last step, at the parameters that it started from.
        if (is_last) {
            for (int i = thread; i < DRAWS * row; i += threads) z_out[(u64)blockIdx.x * DRAWS * row + i] = z[i];
            if (is_own) rows_out[(u64)blockIdx.x * (lowest + row) + thread] = mean[thread];
            value = over_warp(value);
            if (lane == 0) partial[warp] = value;
            __syncthreads();
            if (thread == 0) {
                float total = 0.0f;
                for (int w = 0; w < warps; w++) total += partial[w];
                values[blockIdx.x] = total / DRAWS;
            }
        }

        // A step of the natural gradient.
        for (int l = 0; l < layers_len; l++) {
            const Layer layer = layers[l];
            for (int k = thread; k < layer.width; k += threads) {
                const int i = layer.first + k;
                const float gradient = signal[i] * slope[i];
                const float stiff = !layer.is_binary && l == 0 ? (sums[k] + 1.0f) * STIFF : 1.0f;
                float move = isfinite(gradient) ? gradient * (size / stiff) / fmaxf(slope[i], 1e-9f) : 0.0f;
                move = fminf(fmaxf(move, -STEP_MAX), STEP_MAX);
                if (layer.is_binary) {
                    at[i] = fminf(fmaxf(at[i] + move, -FAR), FAR);
                } else if (move != 0.0f) {
                    at[i] = parameter(mean[i] * expf(move));
                }
            }
        }
        __syncthreads();
    }
    for (int i = thread; i < row; i += threads) lambda[i] = at[i];
}

// Adds to `explained` what each latent explains of each word of a minibatch.
extern "C" __global__ void explain(
    int row, int lowest, int width, const u32 *batch, const u64 *places, const u64 *starts, const u32 *terms,
    const float *counts, const float *weights, const float *z_out, const float *inverse, u64 *explained)
{
    extern __shared__ float4 aligned[];
    float *z = (float *)aligned;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    const u64 document = batch[blockIdx.x], first = starts[document];
    const int words = (int)(starts[document + 1] - first);
    for (int at = threadIdx.x; at < DRAWS * width; at += blockDim.x) z[at] = z_out[(u64)blockIdx.x * DRAWS * row + at];
    __syncthreads();
    inverse += places[blockIdx.x] * DRAWS;
    for (int word = warp; word < words; word += warps) {
        const u64 term = terms[first + word];
        const float x = counts[first + word] / DRAWS;
        float share[DRAWS];
        #pragma unroll
        for (int q = 0; q < DRAWS; q++) share[q] = x * inverse[word * DRAWS + q];
        for (int k = lane; k < width; k += 32) {
            float sum = 0.0f;
            #pragma unroll
            for (int q = 0; q < DRAWS; q++) sum += z[k * DRAWS + q] * share[q];
            if (sum > 0.0f) {
                const u64 whole = (u64)((double)(sum * weights[term * lowest + k]) * WHOLE);
                atomicAdd(explained + term * lowest + k, whole);
            }
        }
    }
}

// The sums over segments of rows, column by column, in a fixed order.
extern "C" __global__ void sum_rows(const float *in, u64 rows, int columns, float *out) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= columns) return;
    const u64 from = rows * blockIdx.y / gridDim.y, to = rows * (blockIdx.y + 1) / gridDim.y;
    float sum = 0.0f;
    for (u64 r = from; r < to; r++) sum += in[r * columns + column];
    out[(u64)blockIdx.y * columns + column] = sum;
}

// The derivatives along the weights between a layer and the one above, of segments of the documents: a block for each parent and segment.
extern "C" __global__ void link_gradient(
    int row, int child, int width, int padded, int parent, u64 documents, const float *z_out, const float *d_above, float *out)
{
    const int j = threadIdx.x;
    const u64 from = documents * blockIdx.y / gridDim.y, to = documents * (blockIdx.y + 1) / gridDim.y;
    for (int at = j; at < width; at += blockDim.x) {
        float sum = 0.0f;
        for (u64 d = from; d < to; d++) {
            for (int q = 0; q < DRAWS; q++) {
                sum += z_out[(d * row + parent + blockIdx.x) * DRAWS + q] * d_above[(d * DRAWS + q) * row + child + at];
            }
        }
        out[((u64)blockIdx.y * gridDim.x + blockIdx.x) * padded + at] = sum / DRAWS;
    }
}

// Moves the statistics of the words' weights by a share towards those of the minibatch.
extern "C" __global__ void update(u64 len, float prior, float scale, float share, u64 *explained, float *shape) {
    const u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= len) return;
    const float goal = prior + scale * (float)((double)explained[at] / WHOLE);
    explained[at] = 0;
    shape[at] += share * (goal - shape[at]);
}

// The weights that documents use. Posterior: 0 gamma, 1 log-normal, 2 a point.
extern "C" __global__ void refresh(
    u64 len, int lowest, int width, int posterior, float sharpness, const float *shape, const float *rate, float *weights)
{
    const u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= len) return;
    const int k = (int)(at % lowest);
    const float a = shape[at], mean = a / rate[k];
    float w = mean;
    if (posterior == 0) {
        // As the host computes it.
        const float u = (a + 1.0f) * (a + 5.0f), rest = (u * 10.0f + 24.0f) / (u * (u + 3.0f)) + 5.0f;
        const float lost = 1.0f / a + rest / (a + 3.0f), x = a + 6.0f, y = 1.0f / x;
        const float series = (y * (-23.0f / 5760.0f) + 1.0f / 48.0f) * y + 1.0f / 24.0f;
        w = (series * y + (x - 0.5f)) * expf(-lost) / rate[k];
    } else if (posterior == 1) {
        w = mean * expf(-0.5f / a);
    }
    if (sharpness < 1.0f && posterior != 2) w = mean * expf(logf(fmaxf(w / mean, 1.17549435e-38f)) * sharpness);
    weights[at] = k < width ? w : 0.0f;
}

// The sums of the weights' means over segments of the terms.
extern "C" __global__ void sum_means(const float *shape, u64 terms, int lowest, double *out) {
    const int k = threadIdx.x + blockIdx.x * blockDim.x;
    if (k >= lowest) return;
    const u64 from = terms * blockIdx.y / gridDim.y, to = terms * (blockIdx.y + 1) / gridDim.y;
    double sum = 0.0;
    for (u64 v = from; v < to; v++) sum += (double)shape[v * lowest + k];
    out[(u64)blockIdx.y * lowest + k] = sum;
}

// The sums of the weights, from those of segments.
extern "C" __global__ void total_means(
    int lowest, int width, int segments, const double *partial, const float *rate, float *sums)
{
    const int k = threadIdx.x + blockIdx.x * blockDim.x;
    if (k >= lowest) return;
    double sum = 0.0;
    for (int s = 0; s < segments; s++) sum += partial[(u64)s * lowest + k];
    sums[k] = k < width ? (float)(sum / (double)rate[k]) : 0.0f;
}
