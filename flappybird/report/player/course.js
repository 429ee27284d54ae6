/* The world, in whole numbers (1/10,000 world unit): where pipes stand, and where a bird lives. An honest copy of
   world/course.py and world/game.py, held to the golden trajectories by a test. Weights and ramps are given by the page. */
const UNIT = 10000;
const $ = (id) => document.getElementById(id);
const data = JSON.parse($("data").textContent);

const MASK = (1n << 64n) - 1n, GOLDEN = 0x9E3779B97F4A7C15n;
function mix64(number) {
  number = ((number ^ (number >> 30n)) * 0xBF58476D1CE4E5B9n) & MASK;
  number = ((number ^ (number >> 27n)) * 0x94D049BB133111EBn) & MASK;
  return number ^ (number >> 31n);
}

/** The pipes of one seed: `gap(number)` gives [centre, height]. */
function courseOf(world, seed) {
  const key = mix64((BigInt(seed) + GOLDEN) & MASK), known = [];
  const height = (number) => {
    const done = Math.min(number - world.easy_pipes, world.ramp_pipes);
    if (done < 0) return world.easy_height;
    if (done === world.ramp_pipes) return world.base_height;
    const change = Math.floor((world.base_height - world.easy_height) / 100);
    return world.easy_height + 100 * Math.floor((2 * change * done + world.ramp_pipes) / (2 * world.ramp_pipes));
  };
  const centre = (number) => {
    const bits = mix64((key + BigInt(number + 1) * GOLDEN) & MASK) >> 32n;
    return (Number((bits * BigInt(world.gap_choices)) >> 32n) - Math.floor(world.gap_choices / 2)) * 100;
  };
  return { world, gap: (number) => known[number] || (known[number] = [centre(number), height(number)]) };
}

/** The number of the newest pipe that is at least `age` ticks old at `tick`, -1 where there is none. */
const newest = (world, tick, age) => Math.max(Math.floor((tick - age - world.first_spawn) / world.interval), -1);
/** How many pipes a bird that lives at `tick` has passed. */
const passed = (world, tick) => newest(world, tick, world.pass_age) + 1;
const pipeX = (world, number, tick) => world.world_w - (tick - world.first_spawn - number * world.interval) * world.speed;

/** The pipes on screen at `tick` (which may lie between two ticks): {number, x, y, height}. */
function visible(course, tick) {
  const { world } = course, whole = Math.floor(tick), pipes = [];
  for (let number = newest(world, whole, world.last_age + 1) + 1; number <= newest(world, whole, 0); number++) {
    const [y, height] = course.gap(number);
    pipes.push({ number, x: pipeX(world, number, tick), y, height });
  }
  return pipes;
}

/** What ends the game for a bird at height `y` in `tick`: null where it lives. */
function crash(course, tick, y) {
  const { world } = course;
  if (y < world.low) return { reason: "floor" };
  if (y > world.high) return { reason: "ceiling" };
  for (let number = newest(world, tick, world.leave_age + 1) + 1; number <= newest(world, tick, world.enter_age); number++) {
    const [centre, height] = course.gap(number), reach = Math.floor(height / 2) - world.radius;
    if (y < centre - reach || y > centre + reach) return { reason: "pipe", pipe: number };
  }
  return null;
}

/** One tick for a bird: [y, velocity] after it. */
const move = (world, [y, velocity], tap) => { const next = tap ? world.jump : velocity + world.gravity; return [y + next, next]; };

/** The states [y, velocity] from `start` on, one more than there are taps. */
function fly(world, taps, start = [0, 0]) {
  const states = [start];
  for (const tap of taps) {
    states.push(move(world, states[states.length - 1], tap === "T"));
  }
  return states;
}

/** Survival score after `ticks` ticks survived; summed in thousandths, so that it is exact. */
function survival(ticks) {
  const { base, ramp, ramp_ticks: until } = data.scoring, ramped = Math.min(ticks, until);
  return (Math.round(1000 * base) * ticks + Math.round(1000 * base * ramp) * (ramped * (ramped + 1) / 2 + until * (ticks - ramped))) / 1000;
}

/** The reward of scores, by the weights of the environment. */
const rewardOf = (pipes, survived, format) => {
  const { pipes_passed: a, survival_score: b, format: c } = data.scoring.weights;
  return a * pipes + b * survived + c * format;
};
