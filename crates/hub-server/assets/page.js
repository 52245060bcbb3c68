// Search as you type, and a button that copies.
"use strict";
const root = document.body.dataset.root;
const byId = (id) => document.getElementById(id);

const make = (name, kind, text) => {
  const element = document.createElement(name);
  if (kind) element.className = kind;
  element.textContent = text;
  return element;
};

const words = byId("words");
const list = byId("found");
const told = byId("told");
let chosen = -1;
let waiting = 0;
let asking = new AbortController();

words.setAttribute("role", "combobox");
words.setAttribute("aria-autocomplete", "list");
words.setAttribute("aria-controls", list.id);

const choose = (place) => {
  chosen = place;
  [...list.children].forEach((item, at) => item.setAttribute("aria-selected", at === place));
  const item = list.children[place];
  if (item) {
    words.setAttribute("aria-activedescendant", item.id);
    item.scrollIntoView({ block: "nearest" });
  } else {
    words.removeAttribute("aria-activedescendant");
  }
};

const open = (isOpen) => {
  list.hidden = !isOpen;
  words.setAttribute("aria-expanded", isOpen);
  choose(-1);
};

const show = (answer) => {
  const items = answer.packages.map((found, at) => {
    const item = make("li", "", "");
    item.id = "found-" + at;
    item.role = "option";
    item.dataset.name = found.name;
    item.append(make("b", "", found.name), make("span", "version", found.latest || ""));
    if (found.description) item.append(make("span", "description", found.description));
    return item;
  });
  list.replaceChildren(...items);
  open(items.length > 0);
  const total = answer.total ?? items.length;
  told.textContent = total === 0 ? "No packages found"
    : total === 1 ? "One package found" : total + " packages found";
};

const close = () => {
  clearTimeout(waiting);
  asking.abort();
  open(false);
};

const ask = async () => {
  asking.abort();
  asking = new AbortController();
  const query = new URLSearchParams({ q: words.value, limit: 8 });
  try {
    const answer = await fetch(root + "api/v1/search?" + query, { signal: asking.signal });
    if (answer.ok) show(await answer.json());
  } catch {
    // Overtaken by the next letter, or no network: Enter still asks for a page.
  }
};

const visit = (name) => {
  location.href = root + "packages/" + name;
};

words.addEventListener("input", () => {
  clearTimeout(waiting);
  asking.abort();
  choose(-1);
  told.textContent = "";
  if (words.value.trim()) waiting = setTimeout(ask, 120);
  else open(false);
});

words.addEventListener("keydown", (event) => {
  const count = list.children.length;
  if (event.isComposing || list.hidden || !count) return;
  const to = {
    ArrowDown: (chosen + 1) % count,
    ArrowUp: chosen < 1 ? count - 1 : chosen - 1,
  }[event.key];
  if (to !== undefined) choose(to);
  else if (event.key === "Enter" && chosen >= 0) visit(list.children[chosen].dataset.name);
  else if (event.key === "Escape") close();
  else return;
  event.preventDefault();
});

words.addEventListener("blur", close);
// The box keeps the focus, so that a click comes before it is closed.
list.addEventListener("mousedown", (event) => event.preventDefault());
list.addEventListener("click", (event) => {
  const item = event.target.closest("li");
  if (item) visit(item.dataset.name);
});
open(false);

for (const button of document.querySelectorAll("[data-copy]")) {
  const command = byId(button.dataset.copy);
  button.hidden = false;
  button.addEventListener("click", async () => {
    let copied = true;
    try {
      await navigator.clipboard.writeText(command.textContent);
    } catch {
      // There is no clipboard without TLS.
      getSelection().selectAllChildren(command);
      copied = document.execCommand("copy");
    }
    button.textContent = copied ? "Copied" : "Selected";
    byId("copied").textContent = copied ? "The command was copied" : "The command is selected";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
}
