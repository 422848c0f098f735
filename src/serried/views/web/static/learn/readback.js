// What a script reads of Learn (desk/readback.js publishes it).
//
//   card()  the key of the card that is open, the one beside a word before the one at the right

/** @param {import("./desk.js").LearnDesk} desk */
export function learnReadback(desk) {
  return {
    card: () => (desk.hover.isOpen ? desk.hover.of?.dataset.term : desk.host.store.state.card),
  };
}
