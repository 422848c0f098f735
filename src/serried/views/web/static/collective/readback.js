// What a script reads of the collective player (desk/readback.js publishes it).
//
//   collective()   null while it is closed; else {time, total, playing, frames, shown: [{name,
//                  algorithm, ranks, steps, done, seconds, whole, links,
//                  pairs}]}: `whole` counts the
//                  blocks that are whole, over all ranks, and `links` the links of the step

/** @param {import("./desk.js").CollectiveDesk} desk */
export function collectiveReadback(desk) {
  return {
    collective: () => {
      if (!desk.isOpen) return null;
      const { answers, playback, stage } = desk;
      return {
        time: playback.time,
        total: playback.total,
        playing: playback.isPlaying,
        frames: desk.isFrames,
        shown: answers.executions.map((each) => shown(each, stage.stepsOf(each))),
      };
    },
  };
}

/** @param {import("./execution.js").Execution} execution @param {number} steps */
function shown(execution, steps) {
  const { header, numSteps, whole } = execution;
  const done = Math.floor(steps + 1e-9);
  const held = execution.held(done);
  return {
    name: header.name,
    algorithm: header.algorithm,
    ranks: header.num_ranks,
    steps: numSteps,
    done,
    seconds: execution.total,
    whole: held.reduce((sum, count, i) => sum + Number(count >= whole[i % whole.length]), 0),
    links: done < numSteps ? execution.links(done).length : 0,
    pairs: done < numSteps ? [...execution.pairsIn(done)] : [],
  };
}
