// The traffic of a step on the map: which kinds are drawn, how wide, and what it says.
//
//   Plan        all that the planned step sends
//   elsewhere   the groups in view, where links are asked for: as wide as the plan of the job says,
//               else all alike

import { Redraw, Surface } from "../base/canvas/surface.js";
import { byId, keepHeight, make } from "../base/dom.js";
import { t } from "../base/i18n.js";
import { bytesText } from "../base/quantity.js";
import { Refusal, askPayload } from "../base/questions.js";
import { theme } from "../base/theme.js";
import { Flows, WIDEST, evened, linksBetween, linksWithin, scaleOf } from "./links.js";
import { planWords, stepWords } from "./state.js";
import { paintTrails } from "./trails.js";

/** @typedef {import("./links.js").Link} Link */
/** @typedef {import("./links.js").Flow} Flow */
/**
 * @typedef {object} TilesOf  parts of the map that stand for the ranks in them
 * @property {string} key
 * @property {boolean} areItems  whether each is one box of cells
 * @property {number} count
 * @property {(rank: number) => number} of
 * @property {(tile: number) => import("./trails.js").Box} box
 */
/**
 * @typedef {object} NestOf  where its cells stand
 * @property {number} aspect  how wide they are
 * @property {(rank: number) => number} cellX
 * @property {(rank: number) => number} cellY
 */
/**
 * @typedef {object} MapOf  the cluster map, as traffic knows it
 * @property {import("../base/scene.js").Scene | null} scene
 * @property {NestOf | null} nest
 * @property {(pixels: number) => TilesOf | null} tiles
 * @property {{x: number, y: number, scale: number}} camera
 * @property {Surface} below
 * @property {number} pinned
 * @property {import("./trails.js").Spared} spared
 * @property {(rank: number) => import("./trails.js").Cell | null} spot
 */

const CELLS_FROM = 30;
const LEAST_TILE = 56;
const MOST_LINKS = 600;
/** Above so many boxes the links of one node's groups stand for all. */
const ALL_UP_TO = 16;
const DECIMAL = 1000;
const EVEN = 3;
const VEIL = 0.6;
/** Tabs whose map shows links where they are asked for; that of a plan always does. */
const TABS = ["layout", "run"];
const THICK = 0.14;

/** Draws traffic between the map's cells and what is lit above them. */
export class PlanTraffic {
  /** @param {import("./state.js").PlanHost} host @param {MapOf} map */
  constructor(host, map) {
    this.host = host;
    this.map = map;
    /** @type {Flows | null} */
    this.flows = null;
    this.asked = "";
    /** Why no plan says how much links carry, "" where one does. */
    this.unplanned = "";
    this.asking = new AbortController();
    this.surface = new Surface(
      /** @type {HTMLCanvasElement} */ (byId("map-links")),
      byId("map-frame"),
    );
    this.redraw = new Redraw(() => this._draw());
    /**
     * Links between boxes, by what they were worked out of.
     * @type {{key: string, links: Link[]}}
     */
    this.known = { key: "", links: [] };
    /** What is drawn: links, and the bytes of the widest. */
    this.drawn = { links: 0, most: 0 };
  }

  get isPlan() {
    return this.host.store.state.view === "plan";
  }

  get isAsked() {
    const { links, view } = this.host.store.state;
    return this.isPlan || (Boolean(links) && TABS.includes(view));
  }

  get isShown() {
    return this.isAsked && this.flows !== null;
  }

  /** Whether all links are as wide, for want of a plan. */
  get isEven() {
    return this.flows?.stepSeconds === null;
  }

  /** The flows that are meant: all of a plan, else those of the groups in view. */
  get meant() {
    const all = this.flows?.all ?? [];
    const kinds = this.map.scene?.kinds ?? [];
    if (this.isPlan) return all;
    return all.filter(({ dim, groups }) =>
      kinds.some((each) => each.kind === groups || (each.dim && each.dim === dim)),
    );
  }

  /** Pixels of the widest link: between small cells lines are thin. */
  get widest() {
    const { scale } = this.map.camera;
    if (this.isEven) return Math.min(EVEN, THICK * scale);
    return scale < CELLS_FROM ? WIDEST : Math.min(WIDEST, THICK * scale);
  }

  /** Kinds that are left out. */
  get hidden() {
    return this.host.store.state.no_traffic.split(",").filter(Boolean);
  }

  /** Shows the traffic of the plan that the state asks for; an answer is not asked for again. */
  async take() {
    const { host } = this;
    if (!this.isAsked) {
      Object.assign(this, { flows: null, asked: "" });
    } else {
      const question = host.question(planWords(host.store.state));
      const asked = this.isPlan ? stepWords(question) : question;
      if (asked !== this.asked) await this._ask(asked);
    }
    this._show();
  }

  /** @param {string} asked */
  async _ask(asked) {
    this.asking.abort();
    this.asking = new AbortController();
    const { signal } = this.asking;
    try {
      this.flows = new Flows(await askPayload(`plan/links?${stepWords(asked)}`, signal));
      Object.assign(this, { asked, unplanned: "" });
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof Refusal)) throw error;
      // The plan itself says what is wrong; its traffic goes until it is right.
      Object.assign(this, { flows: null, asked: "", unplanned: error.message });
      if (!this.isPlan) await this._askEven(asked, signal);
    }
  }

  /** Asks who sends to whom where no plan says how much. */
  /** @param {string} asked @param {AbortSignal} signal */
  async _askEven(asked, signal) {
    try {
      this.flows = new Flows(await askPayload(`layout/links?${asked}`, signal));
      this.asked = asked;
    } catch (error) {
      // What is wrong with the layout, the map says.
      if (!signal.aborted && !(error instanceof Refusal)) throw error;
    }
  }

  /** Tells what a rank sends, a line for each kind. @param {number} rank */
  lines(rank) {
    if (!this.isShown || !this.flows) return [];
    return this.meant.flatMap((flow) => {
      const hop = flow.hop[rank];
      if (!hop || this.isEven || this.hidden.includes(flow.kind)) return [];
      const bytes = bytesText(flow.link_bytes, DECIMAL);
      const speed = bytesText(flow.link_bytes_per_s, DECIMAL);
      const key = flow.pattern === "all" ? "traffic.to_each" : "traffic.to";
      return [t(key, { kind: flow.kind, rank: rank + hop, bytes, speed, ranks: flow.ranks - 1 })];
    });
  }

  _show() {
    const { flows, meant } = this;
    byId("links-open").setAttribute("aria-pressed", String(this.isAsked));
    byId("traffic").hidden = !this.isShown || !meant.length;
    byId("traffic-kinds").replaceChildren(...meant.map((flow) => this._kind(flow)));
    byId("traffic-left").textContent = flows?.leftOut.length
      ? t("traffic.left_out", { kinds: flows.leftOut.join(", ") })
      : "";
    byId("traffic-model").textContent = this._source();
    this.redraw.request();
  }

  /** Says where the widths are from, "" beside the plan that they are of. */
  _source() {
    if (this.isPlan || !this.flows) return "";
    const { cluster, model } = this.host.store.state;
    return this.isEven
      ? t("traffic.even", { why: this.unplanned })
      : t("traffic.model", { model, cluster });
  }

  /** @param {Flow} flow */
  _kind(flow) {
    const { hidden } = this;
    const isOn = !hidden.includes(flow.kind);
    const swatch = make("span", { class: "swatch" });
    swatch.style.background = inkIn(flow);
    const parts = [
      flow.within_bytes && !this.isEven
        ? t("traffic.within", { bytes: bytesText(flow.within_bytes, DECIMAL) })
        : "",
      flow.across_bytes && !this.isEven
        ? t("traffic.across", { bytes: bytesText(flow.across_bytes, DECIMAL) })
        : "",
    ].filter(Boolean);
    const toggle = () => {
      const others = hidden.filter((kind) => kind !== flow.kind);
      this.host.store.step({ no_traffic: [...others, ...(isOn ? [flow.kind] : [])].join(",") });
      this._show();
    };
    const title = this.isEven
      ? t("traffic.kind_even")
      : t("traffic.kind_title", { collectives: flow.collectives.join(", ") });
    return make(
      "button",
      { type: "button", "aria-pressed": String(isOn), title, click: toggle },
      swatch,
      make("b", {}, flow.kind),
      ` ${parts.join(" · ")}`,
    );
  }

  /** Says what widths mean. @param {number} most */
  _scale(most) {
    const second = this.flows?.stepSeconds || 1;
    const samples = scaleOf(most, this.widest).map(({ bytes, width }) => {
      const line = make("span", { class: "width" });
      line.style.height = `${width}px`;
      const told = { bytes: bytesText(bytes, DECIMAL), speed: bytesText(bytes / second, DECIMAL) };
      return make("li", {}, line, t("traffic.width", told));
    });
    byId("traffic-scale").replaceChildren(...(most && !this.isEven ? samples : []));
    // What widths are in view hangs on the map's height, and that on how many lines this takes.
    const box = byId("traffic");
    keepHeight(box, `${box.clientWidth} ${this.asked}`);
  }

  _draw() {
    const { flows, map, surface } = this;
    surface.resize();
    const { scene } = map;
    const tiles = this.isShown ? map.tiles(LEAST_TILE) : null;
    if (!this.isShown || !flows || !tiles || !scene) return surface.wipe();
    // A layout that has changed draws once its own traffic is there.
    if (flows.all.some(({ hop }) => hop.length !== scene.worldSize)) return surface.wipe();
    const context = surface.begin();
    const shown = this.meant.filter(({ kind }) => !this.hidden.includes(kind));
    const boxOf = this._boxes(tiles);
    const hasCells = map.camera.scale >= CELLS_FROM && tiles.areItems;
    const of = this._of(tiles);
    const level = this.isEven ? evened : (/** @type {Link[]} */ links) => links;
    const within = level(hasCells ? this._within(shown, tiles, of) : []);
    // Marks below would make noise of the few links that stand for all.
    if (of && map.pinned < 0) this._veil(context);
    const found = level(this._between(shown, tiles, of));
    const between = found.filter(({ from, to }) => from !== to);
    const bars = hasCells || !tiles.areItems ? [] : found.filter(({ from, to }) => from === to);
    const widest = between
      .slice(-MOST_LINKS)
      .filter(({ from, to }) => this._isSeen(boxOf, from, to));
    const most = Math.max(
      0,
      ...widest.map(({ bytes }) => bytes),
      ...within.map((link) => link.bytes),
    );
    paintTrails({
      context,
      width: surface.width,
      height: surface.height,
      between: widest,
      bars,
      within,
      boxOf,
      cellOf: (rank) => map.spot(rank),
      spared: of && map.pinned < 0 ? { ...map.spared, marks: [] } : map.spared,
      inks: shown.map(inkIn),
      edge: theme().box,
      most: most || 1,
      widest: this.widest,
    });
    this.drawn = { links: widest.length + within.length, most };
    this._scale(most);
  }

  /** @param {CanvasRenderingContext2D} context */
  _veil(context) {
    context.globalAlpha = VEIL;
    context.fillStyle = theme().box;
    context.fillRect(0, 0, this.surface.width, this.surface.height);
    context.globalAlpha = 1;
  }

  /** Returns the outlines of tiles, in pixels. @param {TilesOf} tiles */
  _boxes(tiles) {
    const { camera } = this.map;
    return (/** @type {number} */ tile) => {
      const { x, y, width, height } = tiles.box(tile);
      return {
        x: (x - camera.x) * camera.scale,
        y: (y - camera.y) * camera.scale,
        width: width * camera.scale,
        height: height * camera.scale,
      };
    };
  }

  /**
   * Returns the ranks whose groups are drawn, null for all, and says which these are.
   * @param {TilesOf} tiles
   */
  _of(tiles) {
    const { pinned, scene } = this.map;
    /** @type {number[] | null} */
    let found = null;
    let told = "";
    if (pinned >= 0) {
      found = [pinned];
      told = t("traffic.of_rank", { rank: pinned });
    } else if (scene && tiles.count > ALL_UP_TO) {
      const [node] = scene.node;
      found = [...scene.node.keys()].filter((rank) => scene.node[rank] === node);
      told = t("traffic.of_node", { node });
    }
    byId("traffic-of").textContent = told;
    return found;
  }

  /**
   * @param {Flow[]} shown
   * @param {TilesOf} tiles
   * @param {number[] | null} of
   */
  _between(shown, tiles, of) {
    const { scene } = this.map;
    const key = `${this.asked} ${tiles.key} ${of} ${shown.map(({ kind }) => kind)}`;
    if (key !== this.known.key && scene)
      this.known = { key, links: linksBetween(shown, tiles.of, (rank) => scene.node[rank], of) };
    return this.known.links;
  }

  /**
   * @param {Flow[]} shown
   * @param {TilesOf} tiles
   * @param {number[] | null} of  the ranks that are meant, null for all
   */
  _within(shown, tiles, of) {
    const { below, camera, nest, scene } = this.map;
    if (!nest || !scene) return [];
    const right = camera.x + below.width / camera.scale;
    const bottom = camera.y + below.height / camera.scale;
    const isSeen = (/** @type {number} */ rank) => {
      const [x, y] = [nest.cellX(rank), nest.cellY(rank)];
      return x + nest.aspect >= camera.x && y + 1 >= camera.y && x <= right && y <= bottom;
    };
    return linksWithin(shown, tiles.of, (rank) => scene.node[rank], isSeen, of);
  }

  /**
   * @param {(spot: number) => import("./trails.js").Box} boxOf
   * @param {number} from
   * @param {number} to
   */
  _isSeen(boxOf, from, to) {
    const { height, width } = this.surface;
    return [from, to].some((spot) => {
      const box = boxOf(spot);
      return box.x < width && box.y < height && box.x + box.width > 0 && box.y + box.height > 0;
    });
  }
}

/** @param {Flow} flow */
function inkIn({ ink, ink_on_dark: onDark }) {
  return theme().dark ? onDark : ink;
}
