/* The rules of one tick for many games, as plainly as C can say them: the limit that the batch engine is held against. */
#include <stdint.h>

typedef struct {
    int64_t low, high, jump, gravity, radius, first_spawn, interval, enter_age, leave_age, pass_age, choices, hundredth;
    int64_t easy, base, easy_pipes, ramp_pipes;
} Physics;

static uint64_t mix64(uint64_t n) {
    n = (n ^ n >> 30) * 0xBF58476D1CE4E5B9u;
    n = (n ^ n >> 27) * 0x94D049BB133111EBu;
    return n ^ n >> 31;
}

static const uint64_t golden = 0x9E3779B97F4A7C15u;

/* Where a bird can live at `tick`, and until when: for worlds in which one pipe at a time touches the bird. */
static void look_ahead(const Physics *p, uint64_t seed, int64_t tick, int32_t *low, int32_t *high, int64_t *until) {
    int64_t late = tick - p->leave_age - 1 - p->first_spawn;
    int64_t number = late < 0 ? 0 : late / p->interval + 1;
    int64_t age = tick - p->first_spawn - number * p->interval;
    *low = p->low;
    *high = p->high;
    if (age < p->enter_age) {
        *until = tick + p->enter_age - age;
        return;
    }
    uint64_t drawn = (mix64(mix64(seed + golden) + (uint64_t)(number + 1) * golden) >> 32) * (uint64_t)p->choices >> 32;
    int64_t y = ((int64_t)drawn - p->choices / 2) * p->hundredth;
    int64_t done = number - p->easy_pipes, height = p->easy;
    if (done >= p->ramp_pipes) height = p->base;
    else if (done >= 0) {
        int64_t top = 2 * ((p->base - p->easy) / p->hundredth) * done + p->ramp_pipes, by = 2 * p->ramp_pipes;
        height += (top / by - (top % by < 0)) * p->hundredth;
    }
    if (y - height / 2 + p->radius > *low) *low = (int32_t)(y - height / 2 + p->radius);
    if (y + height / 2 - p->radius < *high) *high = (int32_t)(y + height / 2 - p->radius);
    *until = tick + p->leave_age + 1 - age;
}

void begin(const Physics *p, int64_t games, int64_t *seed, int32_t *y, int32_t *v, int32_t *low, int32_t *high, int64_t *tick,
           int64_t *until) {
    for (int64_t i = 0; i < games; i++) {
        y[i] = v[i] = 0;
        tick[i] = 0;
        look_ahead(p, (uint64_t)seed[i], 0, &low[i], &high[i], &until[i]);
    }
}

/* One tick of all games; one that crashed in the last tick begins anew on the course seed + games. */
void step(const Physics *p, int64_t games, const uint8_t *taps, uint8_t *over, int64_t *seed, int32_t *y, int32_t *v,
          int32_t *low, int32_t *high, int64_t *tick, int64_t *until) {
    for (int64_t i = 0; i < games; i++) {
        if (over[i]) {
            seed[i] = (seed[i] + games) & ((1ll << 53) - 1);
            over[i] = 0;
            y[i] = v[i] = 0;
            tick[i] = 0;
            look_ahead(p, (uint64_t)seed[i], 0, &low[i], &high[i], &until[i]);
            continue;
        }
        v[i] = taps[i] ? (int32_t)p->jump : v[i] + (int32_t)p->gravity;
        y[i] += v[i];
        if (++tick[i] == until[i]) look_ahead(p, (uint64_t)seed[i], tick[i], &low[i], &high[i], &until[i]);
        over[i] = y[i] < low[i] || y[i] > high[i];
    }
}
