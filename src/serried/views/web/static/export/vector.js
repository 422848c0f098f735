// A drawing written down as SVG: what painters tell a canvas, kept as shapes and letters.

/** @typedef {{x: number, y: number, scale: number}} Placed  the pen's origin, and its unit */

const PEN = {
  fillStyle: /** @type {string | CanvasPattern} */ ("#000"),
  strokeStyle: "#000",
  lineWidth: 1,
  lineCap: "butt",
  lineJoin: "miter",
  globalAlpha: 1,
  font: "10px sans-serif",
  textAlign: "start",
  textBaseline: "alphabetic",
};
/** Pixels of a texture that are kept: whole tiles of every texture of the page. */
const TEXTURE = 48;

/** Stands for a canvas's context, as far as the page's painters use one. */
export class Vector {
  /** @param {number} density  pixels of the screen for each of the page */
  constructor(density) {
    this.density = density;
    this.scratch = /** @type {CanvasRenderingContext2D} */ (
      document.createElement("canvas").getContext("2d")
    );
    this.imageSmoothingEnabled = true;
    Object.assign(this, PEN);
    this.fillStyle = PEN.fillStyle;
    this.strokeStyle = PEN.strokeStyle;
    this.font = PEN.font;
    this.textAlign = PEN.textAlign;
    this.textBaseline = PEN.textBaseline;
    this.lineWidth = this.globalAlpha = 1;
    this.lineCap = PEN.lineCap;
    this.lineJoin = PEN.lineJoin;
    /** @type {number[]} */
    this.dash = [];
    this.clipped = "";
    /** @type {Placed} */
    this.at = { x: 0, y: 0, scale: 1 };
    /** @type {Record<string, unknown>[]} */
    this.saved = [];
    /** @type {string[]} */
    this.shapes = [];
    /** @type {string[]} */
    this.defs = [];
    /** @type {Map<CanvasPattern, string>} */
    this.textures = new Map();
    this.d = "";
    /** Boxes of one fill that stand one after another, which become one shape. */
    this.boxes = { look: "", d: "" };
  }

  /** Returns the shapes, and what they refer to, as parts of an SVG. */
  text() {
    this._endBoxes();
    return `<defs>${this.defs.join("")}</defs>${this.shapes.join("\n")}`;
  }

  save() {
    const { fillStyle, strokeStyle, lineWidth, lineCap, lineJoin, globalAlpha } = this;
    const { font, textAlign, textBaseline, dash, clipped, at } = this;
    const pen = { fillStyle, strokeStyle, lineWidth, lineCap, lineJoin, globalAlpha };
    this.saved.push({ ...pen, font, textAlign, textBaseline, dash, clipped, at });
  }

  restore() {
    Object.assign(this, this.saved.pop());
  }

  /**
   * Takes a scale and a shift, in pixels of the screen.
   * @param {number} a @param {number} _b @param {number} _c @param {number} _d
   * @param {number} e @param {number} f
   */
  setTransform(a, _b, _c, _d, e, f) {
    const { density } = this;
    this.at = { x: e / density, y: f / density, scale: a / density };
  }

  /** @param {number[]} dash */
  setLineDash(dash) {
    this.dash = dash;
  }

  /**
   * Leaves a box out of what was filled last; nothing is there to wipe before.
   * @param {number} x @param {number} y @param {number} width @param {number} height
   */
  clearRect(x, y, width, height) {
    if (!this.boxes.d) return;
    const { scale } = this.at;
    const high = number(height * scale);
    // It runs the other way round, and so cuts a hole.
    const down = `v${high}h${number(width * scale)}v-${high}z`;
    this.boxes.d += `M${this._point(x, y)}${down}`;
  }

  beginPath() {
    this.d = "";
  }

  closePath() {
    this.d += "Z";
  }

  /** @param {number} x @param {number} y */
  moveTo(x, y) {
    this.d += `M${this._point(x, y)}`;
  }

  /** @param {number} x @param {number} y */
  lineTo(x, y) {
    this.d += `${this.d ? "L" : "M"}${this._point(x, y)}`;
  }

  /** @param {number} cx @param {number} cy @param {number} x @param {number} y */
  quadraticCurveTo(cx, cy, x, y) {
    this.d += `Q${this._point(cx, cy)} ${this._point(x, y)}`;
  }

  /** @param {number[]} points */
  bezierCurveTo(...points) {
    const [ax, ay, bx, by, x, y] = points;
    this.d += `C${this._point(ax, ay)} ${this._point(bx, by)} ${this._point(x, y)}`;
  }

  /** @param {number} x @param {number} y @param {number} width @param {number} height */
  rect(x, y, width, height) {
    this.d += this._box(x, y, width, height);
  }

  /**
   * @param {number} x @param {number} y @param {number} width @param {number} height
   * @param {number} radius
   */
  roundRect(x, y, width, height, radius = 0) {
    const r = Math.min(radius, Math.abs(width) / 2, Math.abs(height) / 2);
    const size = `${number(r * this.at.scale)} ${number(r * this.at.scale)} 0 0 1 `;
    const [right, bottom] = [x + width, y + height];
    const at = (/** @type {number} */ px, /** @type {number} */ py) => this._point(px, py);
    this.d += `M${at(x + r, y)}L${at(right - r, y)}A${size}${at(right, y + r)}`;
    this.d += `L${at(right, bottom - r)}A${size}${at(right - r, bottom)}`;
    this.d += `L${at(x + r, bottom)}A${size}${at(x, bottom - r)}`;
    this.d += `L${at(x, y + r)}A${size}${at(x + r, y)}Z`;
  }

  /**
   * @param {number} x @param {number} y @param {number} radius
   * @param {number} from @param {number} to
   */
  arc(x, y, radius, from, to) {
    const point = (/** @type {number} */ angle) =>
      this._point(x + radius * Math.cos(angle), y + radius * Math.sin(angle));
    const r = number(radius * this.at.scale);
    const turn = Math.min(to - from, 2 * Math.PI);
    this.d += `${this.d && !this.d.endsWith("Z") ? "L" : "M"}${point(from)}`;
    for (const part of [1, 2, 3]) this.d += `A${r} ${r} 0 0 1 ${point(from + (turn * part) / 3)}`;
    if (turn >= 2 * Math.PI) this.d += "Z";
  }

  /** @param {string} [rule] */
  clip(rule) {
    const name = `c${this.defs.length}`;
    const within = this.clipped ? ` clip-path="url(#${this.clipped})"` : "";
    const even = rule === "evenodd" ? ' clip-rule="evenodd"' : "";
    this.defs.push(`<clipPath id="${name}"${within}><path d="${this.d}"${even}/></clipPath>`);
    this.clipped = name;
  }

  /** @param {string} [rule] */
  fill(rule) {
    const even = rule === "evenodd" ? ' fill-rule="evenodd"' : "";
    this._shape(`d="${this.d}"${even} ${this._paint("fill", this.fillStyle)}`);
  }

  stroke() {
    if (this.d) this._shape(`d="${this.d}" fill="none" ${this._line()}`);
  }

  /** @param {number} x @param {number} y @param {number} width @param {number} height */
  fillRect(x, y, width, height) {
    const look = `${this._paint("fill", this.fillStyle)}${this._clip()}`;
    if (look !== this.boxes.look) this._endBoxes();
    this.boxes.look = look;
    this.boxes.d += this._box(x, y, width, height);
  }

  /** @param {number} x @param {number} y @param {number} width @param {number} height */
  strokeRect(x, y, width, height) {
    this._shape(`d="${this._box(x, y, width, height)}" fill="none" ${this._line()}`);
  }

  /** @param {string} text */
  measureText(text) {
    return this._pen().measureText(text);
  }

  /** @param {string} text @param {number} x @param {number} y @param {number} [most] */
  fillText(text, x, y, most) {
    const pen = this._pen();
    // Letters stand on their line in every reader of SVG, whatever the canvas aligns them to.
    const own = pen.measureText("x").fontBoundingBoxAscent;
    pen.textBaseline = "alphabetic";
    const down = pen.measureText("x").fontBoundingBoxAscent - own;
    const { width } = pen.measureText(text);
    const anchors = { center: "middle", right: "end", end: "end" };
    const anchor = /** @type {Record<string, string>} */ (anchors)[this.textAlign] ?? "start";
    const size = /([\d.]+)px/.exec(this.font);
    const [weight] = /\b(bold|[5-9]00)\b/.exec(this.font) ?? [""];
    const bold = weight ? ` font-weight="${weight}"` : "";
    const family = this.font.replace(/^.*?px(\/\S+)?\s*/, "");
    const scale = this.at.scale;
    const [left, line] = this._point(x, y + down).split(" ");
    const high = number(Number(size?.[1] ?? 10) * scale);
    this._endBoxes();
    this.shapes.push(
      `<text x="${left}" y="${line}" font-size="${high}"` +
        ` font-family="${escaped(family)}"${bold}` +
        ` text-anchor="${anchor}" xml:space="preserve" ${this._paint("fill", this.fillStyle)}` +
        (most && width > most ? ` textLength="${number(most * scale)}"` : "") +
        `${this._clip()}>${escaped(text)}</text>`,
    );
  }

  /** @param {CanvasImageSource & {width: number, height: number}} image @param {number[]} places */
  drawImage(image, ...places) {
    const whole = [0, 0, image.width, image.height];
    const [sx, sy, sw, sh, x, y, w, h] =
      places.length === 8
        ? places
        : [...whole, ...places, ...(places.length === 2 ? whole.slice(2) : [])];
    const canvas = canvasOf(Math.max(1, Math.round(sw)), Math.max(1, Math.round(sh)));
    canvas.getContext("2d")?.drawImage(image, sx, sy, sw, sh, 0, 0, canvas.width, canvas.height);
    const [left, top] = this._point(x, y).split(" ");
    const { scale } = this.at;
    this._endBoxes();
    this.shapes.push(
      `<image x="${left}" y="${top}" width="${number(w * scale)}" height="${number(h * scale)}"` +
        ` preserveAspectRatio="none" style="image-rendering:pixelated"` +
        ` opacity="${this.globalAlpha}" href="${canvas.toDataURL()}"${this._clip()}/>`,
    );
  }

  /** @param {OffscreenCanvas | HTMLCanvasElement} tile @param {string} repeat */
  createPattern(tile, repeat) {
    return this.scratch.createPattern(tile, repeat);
  }

  /** Returns the scratch canvas's pen with the font of this one. */
  _pen() {
    const { font, textAlign, textBaseline } = this;
    return Object.assign(this.scratch, { font, textAlign, textBaseline });
  }

  /** @param {string} look */
  _shape(look) {
    this._endBoxes();
    this.shapes.push(`<path ${look}${this._clip()}/>`);
  }

  _endBoxes() {
    if (this.boxes.d) this.shapes.push(`<path d="${this.boxes.d}" ${this.boxes.look}/>`);
    this.boxes = { look: "", d: "" };
  }

  _clip() {
    return this.clipped ? ` clip-path="url(#${this.clipped})"` : "";
  }

  _line() {
    const { scale } = this.at;
    const wide = number(this.lineWidth * scale);
    const dash = this.dash.map((each) => number(each * scale)).join(" ");
    return (
      `${this._paint("stroke", this.strokeStyle)} stroke-width="${wide}"` +
      (this.lineCap === "butt" ? "" : ` stroke-linecap="${this.lineCap}"`) +
      (this.lineJoin === "miter" ? "" : ` stroke-linejoin="${this.lineJoin}"`) +
      (dash ? ` stroke-dasharray="${dash}"` : "")
    );
  }

  /** @param {"fill" | "stroke"} what @param {string | CanvasPattern} style */
  _paint(what, style) {
    if (typeof style !== "string") return `${what}="url(#${this._texture(style)})"`;
    this.scratch.fillStyle = style;
    const colour = String(this.scratch.fillStyle);
    const [, r, g, b, a] = /rgba\((\d+), (\d+), (\d+), ([\d.]+)\)/.exec(colour) ?? [];
    const alpha = Number(a ?? 1) * this.globalAlpha;
    const faint = alpha < 1 ? ` ${what}-opacity="${number(alpha)}"` : "";
    const solid = a === undefined ? colour : `rgb(${r},${g},${b})`;
    return `${what}="${solid}"${faint}`;
  }

  /** Keeps a texture; returns its name. @param {CanvasPattern} pattern */
  _texture(pattern) {
    const known = this.textures.get(pattern);
    if (known) return known;
    const name = `t${this.defs.length}`;
    const canvas = canvasOf(TEXTURE, TEXTURE);
    const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    pen.fillStyle = pattern;
    pen.fillRect(0, 0, TEXTURE, TEXTURE);
    const size = `width="${TEXTURE}" height="${TEXTURE}"`;
    this.defs.push(
      `<pattern id="${name}" ${size} patternUnits="userSpaceOnUse">` +
        `<image ${size} href="${canvas.toDataURL()}"/></pattern>`,
    );
    this.textures.set(pattern, name);
    return name;
  }

  /** @param {number} x @param {number} y @param {number} width @param {number} height */
  _box(x, y, width, height) {
    const { scale } = this.at;
    const across = number(width * scale);
    return `M${this._point(x, y)}h${across}v${number(height * scale)}h${number(-width * scale)}z`;
  }

  /** @param {number} x @param {number} y */
  _point(x, y) {
    const { at } = this;
    return `${number(at.x + x * at.scale)} ${number(at.y + y * at.scale)}`;
  }
}

/** Writes a number as short as a drawing needs it. @param {number} value */
function number(value) {
  return String(Math.round(value * 100) / 100);
}

/** @param {string} text */
export function escaped(text) {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll('"', "&quot;")
    .replace(/[^\t\n\r -\uFFFD]/gu, "\uFFFD");
}

/** @param {number} width @param {number} height */
function canvasOf(width, height) {
  return Object.assign(document.createElement("canvas"), { width, height });
}
