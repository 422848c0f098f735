// The chain of waiting on the map: a ring around every culprit, an arrow from each rank to those
// that it waits for.

import { Redraw, Surface } from "../base/canvas/surface.js";
import { byId } from "../base/dom.js";
import { t } from "../base/i18n.js";
import { theme } from "../base/theme.js";

/** @typedef {import("./found.js").Finding} Finding */
/** @typedef {{x: number, y: number, size: number}} Cell  its middle */
/** @typedef {(rank: number) => Cell | null} Spot */

const LEAST_CELL = 24;
/** From here on a cell says in a word that it is the cause. */
const WORDED = 48;
/** How far below the middle of a cell arrows run, so that its words stay free. */
const ASIDE = 0.3;
const MOST_ARROWS = 240;
/** So many culprits are named where cells are smaller than that: of more it would be noise. */
const MOST_NAMED = 12;
const RING = 11;
const LETTERS = 13;
const BULGE = 0.14;
const TIP = 7;

/** Draws who waits for whom above the map. */
export class WaitArrows {
  /** @param {Spot} spot  where a rank stands on the map */
  constructor(spot) {
    this.spot = spot;
    /** @type {Finding | null} */
    this.finding = null;
    this.surface = new Surface(
      /** @type {HTMLCanvasElement} */ (byId("map-waits")),
      byId("map-frame"),
    );
    this.redraw = new Redraw(() => this._draw());
    this.drawn = 0;
    /** How many culprits are named, where cells are small. */
    this.named = 0;
  }

  /** Shows the chain of a finding, null none. @param {Finding | null} finding */
  show(finding) {
    this.finding = finding;
    this.redraw.request();
  }

  _draw() {
    const { finding, surface } = this;
    this.drawn = this.named = 0;
    surface.resize();
    if (!finding) return surface.wipe();
    const context = surface.begin();
    const ink = theme().text;
    context.lineWidth = 2;
    context.strokeStyle = context.fillStyle = ink;
    for (const { rank, waits_for: targets, directly } of finding.waiting) {
      context.setLineDash(directly ? [] : [5, 4]);
      // Whoever waits for many is drawn as waiting for the first: the chain is seen, not a web.
      if (targets.length) this._arrow(context, rank, targets[0]);
    }
    context.setLineDash([]);
    const culprits = finding.ranks ?? [];
    for (const rank of culprits) this._ring(context, rank);
    if (culprits.length <= MOST_NAMED) for (const rank of culprits) this._name(context, rank);
    return undefined;
  }

  /** @param {CanvasRenderingContext2D} context @param {number} from @param {number} to */
  _arrow(context, from, to) {
    const [one, other] = [this._foot(from), this._foot(to)];
    if (!one || !other || one.size < LEAST_CELL || this.drawn >= MOST_ARROWS) return;
    if (!this._isSeen(one) && !this._isSeen(other)) return;
    this.drawn++;
    const [dx, dy] = [other.x - one.x, other.y - one.y];
    const length = Math.hypot(dx, dy) || 1;
    const inset = Math.min(ASIDE * one.size, ASIDE * length) / length;
    const [x0, y0] = [one.x + inset * dx, one.y + inset * dy];
    const [x1, y1] = [other.x - inset * dx, other.y - inset * dy];
    // Along a row of cells it bends down whichever way it goes, so that their words stay free.
    const bulge = dx < 0 && -dx > Math.abs(dy) ? -BULGE : BULGE;
    const bend = { x: (x0 + x1) / 2 - bulge * (y1 - y0), y: (y0 + y1) / 2 + bulge * (x1 - x0) };
    context.beginPath();
    context.moveTo(x0, y0);
    context.quadraticCurveTo(bend.x, bend.y, x1, y1);
    context.stroke();
    tip(context, x1, y1, Math.atan2(y1 - bend.y, x1 - bend.x));
  }

  /** Returns where arrows of a rank begin and end. @param {number} rank */
  _foot(rank) {
    const spot = this.spot(rank);
    return spot && { ...spot, y: spot.y + ASIDE * spot.size };
  }

  /** @param {CanvasRenderingContext2D} context @param {number} rank */
  _ring(context, rank) {
    const spot = this.spot(rank);
    if (!spot || spot.size >= WORDED || !this._isSeen(spot)) return;
    context.beginPath();
    context.arc(spot.x, spot.y, Math.max(4, 0.4 * spot.size), 0, 2 * Math.PI);
    context.stroke();
  }

  /**
   * Names a culprit in a cell that is too small to be found among thousands.
   * @param {CanvasRenderingContext2D} context
   * @param {number} rank
   */
  _name(context, rank) {
    const spot = this.spot(rank);
    if (!spot || spot.size >= LEAST_CELL || !this._isSeen(spot)) return;
    this.named++;
    const { box, text } = theme();
    context.beginPath();
    context.arc(spot.x, spot.y, RING, 0, 2 * Math.PI);
    context.stroke();
    const name = t("selected.rank", { rank });
    context.font = `600 ${LETTERS}px ${theme().font}`;
    const width = context.measureText(name).width + 8;
    const isLeft = spot.x + RING + width > this.surface.width;
    const x = isLeft ? spot.x - RING - width - 2 : spot.x + RING + 2;
    context.fillStyle = box;
    context.fillRect(x, spot.y - LETTERS * 0.75, width, LETTERS * 1.5);
    context.fillStyle = text;
    context.textAlign = "left";
    context.textBaseline = "middle";
    context.fillText(name, x + 4, spot.y + 1);
  }

  /** @param {Cell} spot */
  _isSeen({ x, y, size }) {
    const { height, width } = this.surface;
    return x + size > 0 && y + size > 0 && x - size < width && y - size < height;
  }
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {number} x
 * @param {number} y
 * @param {number} way  the direction that it points in
 */
function tip(context, x, y, way) {
  context.beginPath();
  context.moveTo(x, y);
  for (const side of [-0.45, 0.45])
    context.lineTo(x - TIP * Math.cos(way + side), y - TIP * Math.sin(way + side));
  context.closePath();
  context.fill();
}
