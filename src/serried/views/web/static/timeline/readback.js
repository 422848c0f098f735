// What the timeline shows, read back for tests and scripts (desk/readback.js publishes it).

import { boxOf } from "./paint/picture.js";

/**
 * Returns the lines from the top, colours, range and arrows, and how the picture came about.
 * @param {import("./view.js").TimelineView} view
 */
export function timelineReadback(view) {
  const { lines, tracks, links, loader, colouring } = view;
  const { left, top } = view.surface.canvas.getBoundingClientRect();
  return {
    isWhole: tracks?.isWhole ?? true,
    selected: view.selected,
    lines: lines.lines.map(({ row, group, folded, top: at, high }) => ({
      rank: row?.rank ?? -1,
      group,
      folded,
      top: at,
      high,
    })),
    scrolled: view.scrolled,
    left,
    top,
    colour: colouring?.name ?? "",
    range: view.range,
    arrows: Array.from(links?.from ?? [], (from, i) => [from, links?.to[i]]),
    kin: Array.from(links?.spans ?? []),
    boxes: Array.from(links?.spans ?? [], (span) =>
      tracks ? boxOf({ ...view, tracks }, span) : null,
    ),
    sheets: tracks?.sheets.map(({ from, to, bucket, colour, tracks: pieces, groups }) => ({
      from,
      to,
      bucket,
      colour,
      groups: groups.size,
      shares: [...pieces.values()].filter((piece) => !("firstId" in piece)).length,
      exact: [...pieces.values()].filter((piece) => "firstId" in piece).length,
    })),
    asked: loader.count,
    frames: view.drawings.frames,
    ms: [...view.drawings.ms],
  };
}
