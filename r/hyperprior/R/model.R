# A file with a model that was given as text, as the name of a file, or as a function with the model as its body.
model_file <- function(model, folder) {
  if (is.function(model)) {
    text <- deparse(body(model), width.cutoff = 500L)
    # Limits are written x ~ dnorm(0, 1) %_% T(0, ), since R would not read them otherwise.
    text <- gsub("%_%", "", text, fixed = TRUE)
    text <- paste(c("model", text), collapse = "\n")
  } else if (!is.character(model) || !length(model) || anyNA(model)) {
    hp_stop("A model is text, the name of a file, or a function whose body is the model.", 64L)
  } else if (length(model) == 1L && !grepl("[{\n]", model)) {
    if (!file.exists(model)) hp_stop(paste0("There is no file ", model, "."), 66L)
    return(normalizePath(model))
  } else {
    text <- paste(model, collapse = "\n")
  }
  # The report names a model after its folder.
  dir.create(file.path(folder, "model"))
  file <- file.path(folder, "model", "model.bug")
  writeLines(enc2utf8(text), file, useBytes = TRUE)
  file
}

# Data or starting values as an R dump. A factor is coded by its levels, as is text; a data frame gives its columns.
dump_file <- function(values, what, folder) {
  if (is.data.frame(values)) values <- as.list(values)
  nested <- if (is.list(values)) vapply(values, is.data.frame, NA) else NA
  own <- values[!nested]
  if (!is.list(values) || (length(own) && (is.null(names(own)) || any(!nzchar(names(own)))))) {
    hp_stop(paste0("`", what, "` is a list with names, or a data frame."), 64L)
  }
  values <- c(own, unlist(lapply(unname(values[nested]), as.list), recursive = FALSE))
  twice <- unique(names(values)[duplicated(names(values))])
  if (length(twice)) hp_stop(paste0("`", what, "` has more than one ", twice[1], "."), 65L)
  lines <- vapply(names(values), function(name) {
    x <- values[[name]]
    if (is.character(x)) x <- factor(x)
    if (is.factor(x) || inherits(x, c("Date", "POSIXt")) || is.logical(x)) {
      x <- array(as.numeric(x), if (is.null(dim(x))) length(x) else dim(x))
      if (length(dim(x)) == 1L) x <- as.vector(x)
    }
    if (!is.numeric(x)) {
      hp_stop(paste0("`", name, "` in `", what, "` is of class ", class(x)[1], "; numbers, factors and text can be used."), 65L)
    }
    numbers <- paste0("c(", paste(format(as.vector(x), digits = 17L, trim = TRUE), collapse = ", "), ")")
    if (is.null(dim(x))) {
      paste(name, "<-", if (length(x) == 1L) sub("^c\\((.*)\\)$", "\\1", numbers) else numbers)
    } else {
      paste0(name, " <- structure(", numbers, ", .Dim = c(", paste(dim(x), collapse = ", "), "))")
    }
  }, "")
  file <- file.path(folder, paste0(what, ".R"))
  writeLines(lines, file)
  file
}
