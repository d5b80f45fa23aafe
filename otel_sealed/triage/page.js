"use strict";
// The one thing that needs a script: copying. Everything else works without.
for (const button of document.querySelectorAll("button[data-copies]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const text = document.getElementById(button.dataset.copies);
    const told = document.getElementById(button.dataset.tells);
    let copied = false;
    try {
      await navigator.clipboard.writeText(text.textContent);
      copied = true;
    } catch {
      // no permission, or a browser that gives none to a file: the old way
      button.nextElementSibling.nextElementSibling.open = true;
      const selection = window.getSelection();
      selection.selectAllChildren(text);
      copied = document.execCommand("copy");
    }
    told.textContent = copied ? "Copied." : "Selected: copy it with the keyboard.";
  });
}
