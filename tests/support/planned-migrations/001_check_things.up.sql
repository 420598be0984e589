CREATE FUNCTION public.count_things() RETURNS BIGINT LANGUAGE sql AS $$ SELECT count(*) FROM public.things $$;
ALTER TABLE public.things ADD CONSTRAINT things_have_ids CHECK (id IS NOT NULL);
CREATE INDEX things_note ON public.things (note);
SELECT public.count_things();
