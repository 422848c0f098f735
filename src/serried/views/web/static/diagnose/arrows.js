// The chain of waiting on the map: a ring around every culprit, an arrow from each rank to those
// that it waits for.

import { Redraw, Surface } from "../base/canvas/surface.js";
import { byId } from "../base/dom.js";
import { t } from "../base/i18n.js";
import { theme } from "../base/theme.js";

/** @typedef {import("./waits.js").Waits} Waits */
/** @typedef {{x: number, y: number, size: number}} Cell  its middle */
/**
 * @typedef {object} Places  where ranks stand on the map
 * @property {(rank: number) => Cell | null} spot
 * @property {() => number[]} inView  the ranks whose cells are in view
 */

const LEAST_CELL = 24;
/** From here on a cell says in a word that it is the cause. */
const WORDED = 48;
/** How far below the middle of a cell arrows run, so that its words stay free. */
const ASIDE = 0.3;
const MOST_ARROWS = 240;
/** So many culprits are named where cells are smaller than that: of more it would be noise. */
const MOST_NAMED = 12;
/** So many culprits in view have a ring; of more the colours of their cells tell. */
const MOST_RINGS = 240;
const RING = 11;
const LETTERS = 13;
const BULGE = 0.14;
const TIP = 7;

/** Draws who waits for whom above the map. */
export class WaitArrows {
  /** @param {Places} places */
  constructor(places) {
    this.places = places;
    /** @type {Waits | null} */
    this.waits = null;
    this.surface = new Surface(
      /** @type {HTMLCanvasElement} */ (byId("map-waits")),
      byId("map-frame"),
    );
    this.redraw = new Redraw(() => this._draw());
    this.drawn = 0;
    /** How many culprits are named, where cells are small. */
    this.named = 0;
  }

  /** Shows who waits under a finding, null none. @param {Waits | null} waits */
  show(waits) {
    this.waits = waits;
    this.redraw.request();
  }

  _draw() {
    const { waits, surface } = this;
    this.drawn = this.named = 0;
    surface.resize();
    if (!waits) return surface.wipe();
    const context = surface.begin();
    const ink = theme().text;
    context.lineWidth = 2;
    context.strokeStyle = context.fillStyle = ink;
    // All cells are of one size; where they are small, no arrow is drawn, however many ranks wait.
    if ((this.spot(0)?.size ?? 0) >= LEAST_CELL) this._arrows(context, waits);
    context.setLineDash([]);
    const { culprits } = waits;
    const seen = culprits.filter((rank) => this._isSeen(this.spot(rank)));
    if (seen.length <= MOST_RINGS) for (const rank of seen) this._ring(context, rank);
    if (culprits.length <= MOST_NAMED) for (const rank of seen) this._name(context, rank);
    return undefined;
  }

  /**
   * Draws from every rank in view, and to it from those that are not.
   * @param {CanvasRenderingContext2D} context
   * @param {Waits} waits
   */
  _arrows(context, waits) {
    const seen = this.places.inView();
    const { directly, targets } = waits;
    const draw = (/** @type {number} */ rank) => {
      if (targets[rank] < 0) return;
      context.setLineDash(directly[rank] ? [] : [5, 4]);
      // Whoever waits for many is drawn as waiting for the first: the chain is seen, not a web.
      this._arrow(context, rank, targets[rank]);
    };
    seen.forEach(draw);
    const inView = new Set(seen);
    for (const target of seen) {
      if (this.drawn >= MOST_ARROWS) return;
      for (const rank of waits.waitingFor(target)) if (!inView.has(rank)) draw(rank);
    }
  }

  /** @param {number} rank */
  spot(rank) {
    return this.places.spot(rank);
  }

  /** @param {CanvasRenderingContext2D} context @param {number} from @param {number} to */
  _arrow(context, from, to) {
    const [one, other] = [this._foot(from), this._foot(to)];
    if (!one || !other || this.drawn >= MOST_ARROWS) return;
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
    if (!spot || spot.size >= WORDED) return;
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
    if (!spot || spot.size >= LEAST_CELL) return;
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

  /** @param {Cell | null} spot */
  _isSeen(spot) {
    if (!spot) return false;
    const { x, y, size } = spot;
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
