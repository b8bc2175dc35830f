// A file that is dropped or chosen is sent with its progress; without scripts the form sends itself.
(() => {
  "use strict";
  const form = document.getElementById("upload");
  if (!form) return;
  const input = document.getElementById("file");
  const said = document.getElementById("upload-said");
  const sending = document.getElementById("sending");
  const bar = document.getElementById("sent");
  let busy = false;

  const tell = (text) => {
    const note = document.createElement("p");
    note.className = "note bad";
    note.setAttribute("role", "alert");
    note.textContent = text;
    said.replaceChildren(note);
  };

  const send = (file) => {
    if (busy) return;
    if (file.size > Number(form.dataset.most)) {
      tell("The file is larger than what is taken here: put it into the catalog's folder, and name it below.");
      return;
    }
    busy = true;
    said.replaceChildren();
    sending.hidden = false;
    bar.value = 0;
    const fields = new FormData();
    fields.append(input.name, file, file.name);
    const asked = new XMLHttpRequest();
    asked.open("POST", form.action.split("?")[0]);
    asked.setRequestHeader("X-Form", document.body.dataset.form);
    asked.upload.addEventListener("progress", (event) => {
      if (event.lengthComputable) bar.value = 100 * event.loaded / event.total;
    });
    asked.addEventListener("loadend", () => {
      busy = false;
      sending.hidden = true;
      if (asked.status >= 200 && asked.status < 300) {
        location.assign(asked.responseURL);
        return;
      }
      const found = new DOMParser().parseFromString(asked.responseText || "", "text/html").querySelector("[role=alert]");
      tell(found ? found.textContent : "The file could not be sent: is the server still there?");
      delete form.dataset.sent;
    });
    asked.send(fields);
  };

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (input.files.length) send(input.files[0]);
  });
  for (const name of ["dragenter", "dragover"]) {
    form.addEventListener(name, (event) => { event.preventDefault(); form.classList.add("over"); });
  }
  for (const name of ["dragleave", "drop"]) {
    form.addEventListener(name, (event) => { event.preventDefault(); form.classList.remove("over"); });
  }
  form.addEventListener("drop", (event) => {
    const [file] = event.dataTransfer.files;
    if (file) send(file);
  });
})();
