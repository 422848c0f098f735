// The logical cube: the button between it and the physical map, and which axes are its rows,
// columns and blocks.

import { byId, make } from "../../base/dom.js";
import { t } from "../../base/i18n.js";
import { ROLES, readCube, withAxis, writeCube } from "../../map/arrangement.js";

/** @typedef {import("../../base/scene.js").Scene} Scene */
/** @typedef {import("../../map/arrangement.js").Cube} Cube */
/** @typedef {import("../../map/arrangement.js").Role} Role */
/**
 * @typedef {object} Host
 * @property {() => {arrange: string, cube: string}} state
 * @property {() => Scene | null} scene
 * @property {(change: {arrange?: string, cube?: string}) => void} edit
 */

/** Chooses how the cube is cut. */
export class CubeChooser {
  /** @param {Host} host */
  constructor(host) {
    this.host = host;
    byId("map-cube").addEventListener("click", () => this.turn());
  }

  /** Turns from the physical map to the cube and back. */
  turn() {
    const { arrange } = this.host.state();
    if (this.host.scene()?.meshes.length)
      this.host.edit({ arrange: arrange === "cube" ? "node" : "cube" });
  }

  /** Shows the axes in their roles, and whether there are any. */
  show() {
    const { arrange, cube: text } = this.host.state();
    const scene = this.host.scene();
    const button = /** @type {HTMLButtonElement} */ (byId("map-cube"));
    button.disabled = Boolean(scene && !scene.meshes.length);
    button.setAttribute("aria-pressed", String(arrange === "cube"));
    const box = byId("cube-axes");
    const cube = arrange === "cube" && scene ? readCube(text, scene) : null;
    box.hidden = !cube;
    if (cube && scene) box.replaceChildren(...this._mesh(cube, scene), ...this._axes(cube, scene));
  }

  /** @param {Cube} cube @param {Scene} scene */
  _mesh({ mesh }, scene) {
    if (scene.meshes.length < 2) return [];
    const select = make(
      "select",
      {
        "aria-label": t("cube.mesh"),
        title: t("cube.mesh"),
        change: () => this.host.edit({ cube: `${select.value}:` }),
      },
      ...scene.meshes.map(({ name }) => make("option", { value: name }, name)),
    );
    select.value = mesh;
    return [select];
  }

  /** @param {Cube} cube @param {Scene} scene */
  _axes(cube, scene) {
    const axes = scene.meshes.find(({ name }) => name === cube.mesh)?.axes ?? {};
    return Object.entries(axes).map(([axis, size]) => {
      const options = ROLES.map((role) => make("option", { value: role }, t(`cube.${role}`)));
      const name = t("cube.axis", { axis, size });
      const turn = () => {
        const role = /** @type {Role} */ (select.value);
        this.host.edit({ cube: writeCube(withAxis(cube, axis, role, scene), scene) });
      };
      const select = make("select", { "aria-label": name, change: turn }, ...options);
      select.value = ROLES.find((role) => cube.roles[role].includes(axis)) ?? "blocks";
      return make("label", {}, make("span", {}, name), select);
    });
  }
}
